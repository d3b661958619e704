//! The data plane: takes requests, judges each by the published table, and passes on those that
//! are admitted.
//!
//! One thread a core, each with its own listeners, connections and pool ([`worker`]); one load of
//! the table a request ([`admission`]); nothing reaches a backend but through an admission
//! ([`upstream::send`]); whatever is in doubt is refused (R11, R16); and what is no longer
//! admitted ends ([`flight`], R12).

mod access_log;
mod admission;
mod authority;
mod codec;
mod connection;
mod flight;
mod forward;
#[doc(hidden)]
pub mod fuzz;
mod listen;
mod metrics;
mod options;
mod pages;
mod plain;
mod proxy;
mod record;
mod request;
mod serve_http;
mod socket;
mod tls;
mod trailers;
mod tunnel;
mod upstream;
mod watch;
mod worker;

pub use authority::{Authority, AuthorityError};
pub use listen::ListenError;
pub use metrics::{LATENCY_BUCKETS_US, Metrics};
pub use options::{AccessLog, Defences, Dial, Limits, LogLevel, Options, Timeouts};
pub use proxy::{Proxy, Running, StartError};
pub use tls::{CertificateError, certified_key};
