//! Flags of whatever runs an edge.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, ValueEnum};
use ipnet::IpNet;
use model::time::Span;

use super::values::{bytes, listener, range, span};

/// Which requests the access log tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AccessLog {
    /// None.
    Off,
    /// Those that were refused.
    Refused,
    /// Every one.
    All,
}

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Edge")]
pub(crate) struct EdgeFlags {
    /// Where HTTPS is served
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8443", value_parser = listener)]
    pub(crate) https: SocketAddr,
    /// Where plain HTTP is answered, with a redirect to HTTPS
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", value_parser = listener)]
    pub(crate) http: SocketAddr,
    /// Where the edge API is served; plain HTTP on loopback only
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4041", value_parser = listener)]
    pub(crate) api: SocketAddr,
    /// Certificate chain (PEM) for --api where it leaves loopback
    #[arg(long, value_name = "FILE", requires = "api_tls_key")]
    pub(crate) api_tls_cert: Option<PathBuf>,
    /// Key (PEM) of --api-tls-cert
    #[arg(long, value_name = "FILE", requires = "api_tls_cert")]
    pub(crate) api_tls_key: Option<PathBuf>,
    /// Name besides addresses and localhost under which --api and --admin may be asked; repeatable
    #[arg(long = "api-name", value_name = "HOST")]
    pub(crate) api_names: Vec<String>,
    /// The port that redirects name [default: the port of --https]
    #[arg(long, value_name = "PORT")]
    pub(crate) public_port: Option<u16>,
    /// Access log on standard error, JSON lines
    #[arg(long, value_name = "WHICH", default_value = "off")]
    pub(crate) access_log: AccessLog,
    /// Page (HTML) shown for a closed route instead of the built-in one
    #[arg(long, value_name = "FILE")]
    pub(crate) placeholder: Option<PathBuf>,
    /// Within what time a response or tunnel that is no longer admitted is cut: in its last half
    /// second
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = span)]
    pub(crate) revoke_grace: Span,
    /// Largest body of a request
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = bytes)]
    pub(crate) max_request_body: u64,
    /// Longest that a request, its answer or its tunnel may take in all, however busy
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = span)]
    pub(crate) max_request_time: Span,
    /// How long requests under way may take when the edge stops
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = span)]
    pub(crate) drain: Span,
    /// Addresses that backends may have although they are loopback; repeatable
    #[arg(long = "dial-allow", value_name = "CIDR", value_parser = range)]
    pub(crate) dial_allow: Vec<IpNet>,
    /// Threads that answer requests [default: one per core]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) workers: Option<usize>,
}
