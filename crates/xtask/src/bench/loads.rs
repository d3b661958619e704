//! The kinds of load, and the tools that make them. A further row is a further entry of [`LOADS`].

use anyhow::{Context as _, bail};

use super::{
    on_core,
    servers::{CORE_OF_LOAD, HOST},
    which,
};

/// A kind of load.
pub(super) struct Load {
    pub(super) name: &'static str,
    pub(super) tool: Tool,
    pub(super) port: Port,
    pub(super) path: &'static str,
    /// Headers besides `Host`.
    pub(super) headers: &'static [&'static str],
    /// The ratio to nginx that is not to be exceeded.
    pub(super) aim: Option<f64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    /// HTTP/1, 64 connections.
    Wrk,
    /// HTTP/2, 16 connections with as many streams each.
    H2load { streams: &'static str },
}

/// Where a proxy is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Port {
    Plain,
    Tls,
}

impl Port {
    pub(super) const fn scheme(self) -> &'static str {
        match self {
            Self::Plain => "http",
            Self::Tls => "https",
        }
    }
}

/// What a browser sends with every request.
const BROWSER: &[&str] = &[
    "user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
    "accept-language: en-US,en;q=0.5",
    "accept-encoding: gzip, deflate, br, zstd",
    "referer: https://localhost/start",
    "cookie: session=6f1ed002ab5595859014ebf0951522d9; theme=dark; consent=1",
    "upgrade-insecure-requests: 1",
    "sec-fetch-dest: document",
    "sec-fetch-mode: navigate",
    "sec-fetch-site: same-origin",
    "sec-fetch-user: ?1",
    "priority: u=0, i",
    "pragma: no-cache",
    "cache-control: no-cache",
];

const SMALL: &str = "/small";
const BIG: &str = "/big";

pub(super) const LOADS: &[Load] = &[
    Load {
        name: "HTTP/1 plain, small",
        tool: Tool::Wrk,
        port: Port::Plain,
        path: SMALL,
        headers: &[],
        aim: Some(1.3),
    },
    Load {
        name: "HTTP/1 plain, 64 KiB",
        tool: Tool::Wrk,
        port: Port::Plain,
        path: BIG,
        headers: &[],
        aim: Some(1.3),
    },
    Load {
        name: "HTTP/1 plain, a browser's headers",
        tool: Tool::Wrk,
        port: Port::Plain,
        path: SMALL,
        headers: BROWSER,
        aim: Some(1.3),
    },
    Load {
        name: "TLS, HTTP/1, small",
        tool: Tool::Wrk,
        port: Port::Tls,
        path: SMALL,
        headers: &[],
        aim: Some(0.9),
    },
    Load {
        name: "TLS, HTTP/1, 64 KiB",
        tool: Tool::Wrk,
        port: Port::Tls,
        path: BIG,
        headers: &[],
        aim: Some(0.9),
    },
    Load {
        name: "TLS, a handshake for each request",
        tool: Tool::Wrk,
        port: Port::Tls,
        path: SMALL,
        headers: &["connection: close"],
        aim: Some(0.9),
    },
    Load {
        name: "HTTP/2, small",
        tool: Tool::H2load { streams: "16" },
        port: Port::Tls,
        path: SMALL,
        headers: &[],
        aim: Some(0.9),
    },
    Load {
        name: "HTTP/2, 64 KiB",
        tool: Tool::H2load { streams: "4" },
        port: Port::Tls,
        path: BIG,
        headers: &[],
        aim: Some(0.9),
    },
    Load {
        name: "HTTP/2, a browser's headers",
        tool: Tool::H2load { streams: "16" },
        port: Port::Tls,
        path: SMALL,
        headers: BROWSER,
        aim: Some(0.9),
    },
];

/// Makes a load for some seconds; returns how many requests were answered. None may fail.
pub(super) fn make(load: &Load, port: u16, seconds: u32) -> anyhow::Result<u64> {
    // As where ports are the usual ones; wrk leaves out its own header for one spelled so.
    let (tool, host) = match load.tool {
        Tool::Wrk => ("wrk", format!("Host: {HOST}")),
        Tool::H2load { .. } => ("h2load", format!(":authority: {HOST}")),
    };
    let program = which(tool).with_context(|| format!("{tool} is installed"))?;
    let mut command = on_core(CORE_OF_LOAD, &program);
    match load.tool {
        Tool::Wrk => command.args(["-t1", "-c64", "-d", &seconds.to_string()]),
        Tool::H2load { streams } => command
            .args(["-t1", "-c16", "-m", streams, "-D", &seconds.to_string()])
            .args([
                "--connect-to=127.0.0.1",
                "--tls13-ciphers=TLS_AES_256_GCM_SHA384",
            ]),
    };
    for header in load.headers.iter().copied().chain([host.as_str()]) {
        command.args(["-H", header]);
    }
    let output = command
        .arg(format!(
            "{}://{HOST}:{port}{}",
            load.port.scheme(),
            load.path
        ))
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let answered = match load.tool {
        Tool::Wrk => of_wrk(&text),
        Tool::H2load { .. } => of_h2load(&text),
    };
    let Some(answered) = answered else {
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!(
            "{}: requests failed, or there is no count of them:\n{text}{errors}",
            load.name
        );
    };
    Ok(answered)
}

fn of_wrk(text: &str) -> Option<u64> {
    if text.contains("Non-2xx") || text.contains("Socket errors") {
        return None;
    }
    let line = text.lines().find(|line| line.contains(" requests in "))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Reads "requests: 123 total, 123 started, 123 done, 123 succeeded, 0 failed, ...".
fn of_h2load(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("requests:"))?;
    let count = |word: &str| -> Option<u64> {
        let part = line.split(',').find(|part| part.contains(word))?;
        part.split_whitespace().next()?.parse().ok()
    };
    let answered = count("succeeded")?;
    (count("failed")? == 0 && answered > 0).then_some(answered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_tools_say_is_understood() {
        let wrk = "  2 threads\n  290111 requests in 3.10s, 55.06MB read\nRequests/sec: 9";
        assert_eq!(of_wrk(wrk), Some(290_111));
        assert_eq!(
            of_wrk(&format!("{wrk}\n  Non-2xx or 3xx responses: 5")),
            None
        );
        let h2load = |failed: u8| {
            format!(
                "finished in 3s\nrequests: 90 total, 90 started, 90 done, 88 succeeded, {failed} failed, 0 errored\n"
            )
        };
        assert_eq!(of_h2load(&h2load(0)), Some(88));
        assert_eq!(of_h2load(&h2load(2)), None);
    }
}
