//! The access log: one JSON object a line, written by a thread of its own.
//!
//! A line holds what an operator needs to find a request and nothing that is a secret: no query,
//! no header, no body. Lines wait in a bounded queue; when it is full they are dropped and
//! counted, and no request waits.

use std::{
    io::Write,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread::{self, JoinHandle},
    time::SystemTime,
};

use serde_json::json;

use crate::options::{AccessLog, LogLevel};

/// What is logged of a request.
#[derive(Debug)]
pub(crate) struct Line<'r> {
    pub(crate) request_id: &'r str,
    pub(crate) client: std::net::IpAddr,
    pub(crate) method: &'r str,
    pub(crate) host: &'r str,
    pub(crate) path: &'r str,
    pub(crate) protocol: &'static str,
    pub(crate) verdict: &'static str,
    /// The label of the refusal.
    pub(crate) reason: Option<&'static str>,
    /// The module that refused.
    pub(crate) module: Option<&'static str>,
    pub(crate) route: Option<&'r str>,
    pub(crate) generation: Option<u64>,
    pub(crate) status: u16,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    pub(crate) backend_us: Option<u64>,
    pub(crate) total_us: u64,
}

/// A worker's end of the log.
#[derive(Clone, Debug)]
pub(crate) struct Logger {
    pub(crate) level: LogLevel,
    lines: SyncSender<String>,
}

impl Logger {
    /// Starts the writer, if there is something to write; it ends with the last logger.
    pub(crate) fn start(
        log: AccessLog,
        lines_max: usize,
    ) -> std::io::Result<(Self, Option<JoinHandle<()>>)> {
        let (lines, waiting) = sync_channel(lines_max);
        let logger = Self {
            level: log.level,
            lines,
        };
        if log.level == LogLevel::Off {
            return Ok((logger, None));
        }
        let writer = thread::Builder::new().name(String::from("access-log"));
        let writer = writer.spawn(move || write(log.sink, &waiting))?;
        Ok((logger, Some(writer)))
    }

    /// Whether such a request is logged.
    pub(crate) fn wants(&self, refused: bool) -> bool {
        match self.level {
            LogLevel::Off => false,
            LogLevel::Refused => refused,
            LogLevel::All => true,
        }
    }

    /// Queues a line; false when it is dropped.
    pub(crate) fn log(&self, line: &Line<'_>) -> bool {
        self.lines.try_send(format(line, SystemTime::now())).is_ok()
    }
}

fn format(line: &Line<'_>, now: SystemTime) -> String {
    let Line {
        request_id,
        client,
        method,
        host,
        path,
        protocol,
        verdict,
        reason,
        module,
        route,
        generation,
        status,
        bytes_in,
        bytes_out,
        backend_us,
        total_us,
    } = line;
    let time =
        jiff::Timestamp::try_from(now).map_or_else(|_| String::new(), |time| format!("{time:.3}"));
    let mut text = json!({
        "time": time,
        "request_id": request_id,
        "client": client.to_string(),
        "method": method,
        "host": host,
        "path": path,
        "protocol": protocol,
        "verdict": verdict,
        "reason": reason,
        "module": module,
        "route": route,
        "generation": generation,
        "status": status,
        "bytes_in": bytes_in,
        "bytes_out": bytes_out,
        "backend_us": backend_us,
        "total_us": total_us,
    })
    .to_string();
    text.push('\n');
    text
}

/// Writes what waits; flushes when nothing does.
fn write(mut sink: Box<dyn Write + Send>, waiting: &Receiver<String>) {
    let mut failed = false;
    while let Ok(first) = waiting.recv() {
        let mut result = sink.write_all(first.as_bytes());
        for line in waiting.try_iter() {
            result = result.and_then(|()| sink.write_all(line.as_bytes()));
        }
        match result.and_then(|()| sink.flush()) {
            Ok(()) => failed = false,
            Err(error) => {
                if !std::mem::replace(&mut failed, true) {
                    tracing::error!(
                        error = &error as &dyn std::error::Error,
                        "the access log cannot be written"
                    );
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> Line<'static> {
        Line {
            request_id: "1",
            client: std::net::Ipv4Addr::LOCALHOST.into(),
            method: "GET",
            host: "a\"b",
            path: "/",
            protocol: "HTTP/2",
            verdict: "refused",
            reason: Some("address-refused"),
            module: Some("ipRestriction"),
            route: Some("edghtsrt_1"),
            generation: Some(3),
            status: 403,
            bytes_in: 0,
            bytes_out: 10,
            backend_us: None,
            total_us: 12,
        }
    }

    #[test]
    fn a_line_is_one_json_object() {
        let text = format(&line(), SystemTime::UNIX_EPOCH);
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(value["time"], "1970-01-01T00:00:00.000Z");
        assert_eq!(
            (&value["host"], &value["module"]),
            (&json!("a\"b"), &json!("ipRestriction"))
        );
        assert_eq!(text.matches('\n').count(), 1);
    }

    #[test]
    fn what_does_not_fit_is_dropped_at_once() {
        let (lines, waiting) = sync_channel(1);
        let logger = Logger {
            level: LogLevel::All,
            lines,
        };
        assert!(logger.log(&line()));
        assert!(!logger.log(&line()));
        drop(waiting);
    }
}
