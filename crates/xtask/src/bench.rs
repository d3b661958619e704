//! `cargo xtask bench`: what a request costs beside Debian's nginx, and what `check` costs.
//!
//! The measure is processor time of the proxy per request, from `/proc/PID/task/*/schedstat`, in
//! interleaved rounds on the same machine, reported as ratios of the same round: a busy machine
//! slows both. The load generator and the backend share core 0, the proxy has core 1.

use std::{
    fmt::Write as _,
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};

use crate::run::{has, root, run, say};

/// Rounds of every cell.
const ROUNDS: usize = 5;
/// Length of one run.
const SECONDS: &str = "3";
const HOST: &str = "bench.example.com";

/// A kind of load.
struct Scenario {
    name: &'static str,
    tool: Tool,
    tls: bool,
    path: &'static str,
    aim: f64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Tool {
    Wrk,
    H2load,
}

const SCENARIOS: [Scenario; 4] = [
    Scenario {
        name: "TLS, HTTP/1, small",
        tool: Tool::Wrk,
        tls: true,
        path: "/small",
        aim: 0.9,
    },
    Scenario {
        name: "TLS, HTTP/1, 64 KiB",
        tool: Tool::Wrk,
        tls: true,
        path: "/big",
        aim: 0.9,
    },
    Scenario {
        name: "HTTP/2, small",
        tool: Tool::H2load,
        tls: true,
        path: "/small",
        aim: 0.9,
    },
    Scenario {
        name: "HTTP/2, 64 KiB",
        tool: Tool::H2load,
        tls: true,
        path: "/big",
        aim: 0.9,
    },
];

struct Kill(Child);

impl Drop for Kill {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

pub(crate) fn bench() -> anyhow::Result<()> {
    tools()?;
    run(
        "release build",
        "cargo",
        &["build", "--release", "-p", "cli"],
    )?;
    let dir = root().join("target/bench");
    fs::create_dir_all(&dir)?;
    let program = root().join("target/release/portcullis");
    let mut report = String::new();
    proxy(&dir, &program, &mut report)?;
    check(&dir, &program, &mut report)?;
    let page = format!("{HEAD}\n{report}");
    fs::write(root().join("docs/performance.md"), page)?;
    say("docs/performance.md is written");
    Ok(())
}

const HEAD: &str = "\
# Performance

Written by `cargo xtask bench`. Ratios are of processor time of the proxy per request, Portcullis to Debian's nginx, median of rounds that
alternate on the same core; below 1 is cheaper than nginx. Everything that a route has is on: routing, an IP restriction and header changes,
timeouts, metrics; the access log is off on both sides. One worker each, loopback, one machine: compare ratios, not microseconds.
";

fn tools() -> anyhow::Result<()> {
    let missing: Vec<_> = [
        ("nginx", "nginx-light"),
        ("wrk", "wrk"),
        ("h2load", "nghttp2-client"),
        ("taskset", "util-linux"),
    ]
    .into_iter()
    .filter(|(program, _)| !has(program) && which(program).is_none())
    .map(|(_, package)| package)
    .collect();
    if missing.is_empty() {
        return Ok(());
    }
    say(&format!("installing {}", missing.join(", ")));
    run("package lists", "apt-get", &["update", "-q"])?;
    let mut install = vec!["install", "-y", "-q", "--no-install-recommends"];
    install.extend(missing);
    run("install", "apt-get", &install)
}

fn which(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into()])
        .map(|dir| dir.join(program))
        .find(|file| file.is_file())
}

fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn wait_for(address: SocketAddr) -> anyhow::Result<()> {
    let begun = Instant::now();
    while TcpStream::connect(address).is_err() {
        if begun.elapsed() > Duration::from_secs(10) {
            bail!("nothing listens on {address}");
        }
        std::thread::park_timeout(Duration::from_millis(20));
    }
    Ok(())
}

fn nginx(dir: &Path, name: &str, cpu: &str, config: &str, port: u16) -> anyhow::Result<Kill> {
    let home = dir.join(name);
    fs::create_dir_all(&home)?;
    let file = home.join("nginx.conf");
    fs::write(&file, config)?;
    let program = which("nginx").context("nginx is installed")?;
    let child = Command::new("taskset")
        .args(["-c", cpu])
        .arg(program)
        .arg("-p")
        .arg(&home)
        .arg("-c")
        .arg(&file)
        .stderr(Stdio::null())
        .spawn()?;
    wait_for(SocketAddr::from(([127, 0, 0, 1], port)))?;
    Ok(Kill(child))
}

/// nginx stays one process, so that its time is that of one pid.
const NGINX: &str =
    "daemon off; master_process off; worker_processes 1; error_log /dev/null; pid nginx.pid;
events { worker_connections 4096; }";

fn backend_config(dir: &Path, port: u16) -> String {
    format!(
        "{NGINX}\nhttp {{ access_log off; keepalive_requests 1000000; sendfile on; default_type text/plain;\n\
         server {{ listen 127.0.0.1:{port}; root {};\n\
         location = /small {{ return 200 \"{}\"; }} }} }}\n",
        dir.display(),
        "x".repeat(128)
    )
}

fn proxy_config(dir: &Path, port: u16, backend: u16) -> String {
    let dir = dir.display();
    format!(
        "{NGINX}\nhttp {{ access_log off; keepalive_requests 1000000;\n\
         upstream b {{ server 127.0.0.1:{backend}; keepalive 128; }}\n\
         server {{ listen 127.0.0.1:{port} ssl http2; server_name {HOST}; http2_max_requests 1000000;\n\
         ssl_certificate {dir}/tls.crt; ssl_certificate_key {dir}/tls.key; ssl_protocols TLSv1.3;\n\
         location / {{ allow 127.0.0.0/8; deny all; add_header x-frame-options DENY;\n\
         proxy_set_header x-set bench; proxy_set_header x-forwarded-for $remote_addr;\n\
         proxy_set_header x-forwarded-proto https; proxy_set_header x-forwarded-host $host;\n\
         proxy_set_header host $host; proxy_set_header connection \"\"; proxy_http_version 1.1; proxy_pass http://b; }} }} }}\n"
    )
}

fn manifest(dir: &Path) -> anyhow::Result<PathBuf> {
    let file = dir.join("bench.yaml");
    let indent = |text: String| {
        text.lines()
            .map(|line| format!("    {line}\n"))
            .collect::<String>()
    };
    let (chain, key) = (
        indent(fs::read_to_string(dir.join("tls.crt"))?),
        indent(fs::read_to_string(dir.join("tls.key"))?),
    );
    fs::write(
        &file,
        format!(
            "apiVersion: ingress.k8s.ngrok.com/v1alpha1\nkind: IPPolicy\nmetadata: {{name: here}}\n\
             spec: {{rules: [{{cidr: 127.0.0.0/8, action: allow}}]}}\n---\n\
             apiVersion: ingress.k8s.ngrok.com/v1alpha1\nkind: NgrokModuleSet\nmetadata: {{name: set}}\n\
             modules:\n  ipRestriction: {{policies: [here]}}\n  headers:\n    request: {{add: {{x-set: bench}}}}\n\
             \x20   response: {{add: {{x-frame-options: DENY}}}}\n---\n\
             apiVersion: v1\nkind: Service\nmetadata: {{name: web}}\nspec: {{ports: [{{port: 80}}]}}\n---\n\
             apiVersion: v1\nkind: Secret\nmetadata: {{name: tls}}\ntype: kubernetes.io/tls\nstringData:\n  tls.crt: |\n{chain}  tls.key: |\n{key}---\n\
             apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: web\n  annotations: {{k8s.ngrok.com/modules: set}}\n\
             spec:\n  ingressClassName: ngrok\n  tls: [{{hosts: [{HOST}], secretName: tls}}]\n  rules:\n  - host: {HOST}\n    http:\n      paths:\n\
             \x20     - {{path: /, pathType: Prefix, backend: {{service: {{name: web, port: {{number: 80}}}}}}}}\n"
        ),
    )?;
    Ok(file)
}

/// Starts `portcullis up` on core 1 and waits for its open route.
fn portcullis(dir: &Path, program: &Path, backend: u16) -> anyhow::Result<(Kill, u16)> {
    let data = dir.join("data");
    let _fresh = fs::remove_dir_all(&data);
    let https = free_port()?;
    let mut child = Command::new("taskset")
        .args(["-c", "1"])
        .arg(program)
        .args([
            "--log",
            "error",
            "up",
            "-o",
            "json",
            "--workers",
            "1",
            "--http",
            "127.0.0.1:0",
            "--api",
            "127.0.0.1:0",
            "--admin",
            "127.0.0.1:0",
        ])
        .arg("--https")
        .arg(format!("127.0.0.1:{https}"))
        .arg("--data-dir")
        .arg(&data)
        .arg("--service")
        .arg(format!("default/web:80=127.0.0.1:{backend}"))
        .arg("-f")
        .arg(manifest(dir)?)
        .stdout(Stdio::piped())
        .spawn()?;
    let stdout = child.stdout.take().context("it is piped")?;
    let child = Kill(child);
    for line in BufReader::new(stdout).lines() {
        let line = line?;
        if line.contains("\"to\":\"open\"") {
            return Ok((child, https));
        }
        if line.contains("\"to\":\"closed\"") {
            bail!("the bench's route does not open: {line}");
        }
    }
    bail!("portcullis ended")
}

/// Nanoseconds that all threads of a process have run.
fn cpu_ns(pid: u32) -> anyhow::Result<u64> {
    let mut total = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = fs::read_to_string(task?.path().join("schedstat"))?;
        total += text
            .split_whitespace()
            .next()
            .unwrap_or("0")
            .parse::<u64>()?;
    }
    Ok(total)
}

/// Microseconds of processor time a request, and requests a second.
fn measure(scenario: &Scenario, port: u16, pid: u32) -> anyhow::Result<(f64, f64)> {
    let scheme = if scenario.tls { "https" } else { "http" };
    let url = format!("{scheme}://{HOST}:{port}{}", scenario.path);
    let before = cpu_ns(pid)?;
    let begun = Instant::now();
    let mut command = Command::new("taskset");
    command.args(["-c", "0"]);
    match scenario.tool {
        Tool::Wrk => command.args(["wrk", "-t1", "-c64", "-d", SECONDS, &url]),
        Tool::H2load => {
            let streams = if scenario.path == "/small" { "16" } else { "4" };
            command.args(["h2load", "-t1", "-c16", "-m", streams, "-D", SECONDS, &url])
        }
    };
    let output = command.output()?;
    let elapsed = begun.elapsed().as_secs_f64();
    let spent = cpu_ns(pid)? - before;
    let text = String::from_utf8_lossy(&output.stdout);
    let requests = requests(scenario.tool, &text)
        .with_context(|| format!("{} says nothing usable:\n{text}", scenario.name))?;
    #[expect(clippy::cast_precision_loss, reason = "counts of a few seconds")]
    Ok((
        spent as f64 / 1000.0 / requests as f64,
        requests as f64 / elapsed,
    ))
}

/// Requests that were answered; none may have failed.
fn requests(tool: Tool, text: &str) -> Option<u64> {
    match tool {
        Tool::Wrk => {
            if text.contains("Non-2xx") || text.contains("Socket errors") {
                return None;
            }
            let line = text.lines().find(|line| line.contains(" requests in "))?;
            line.split_whitespace().next()?.parse().ok()
        }
        Tool::H2load => {
            // "requests: 123 total, 123 started, 123 done, 123 succeeded, 0 failed, ..."
            let line = text.lines().find(|line| line.starts_with("requests:"))?;
            let count = |word: &str| -> Option<u64> {
                let part = line
                    .trim_start_matches("requests:")
                    .split(',')
                    .find(|p| p.contains(word))?;
                part.split_whitespace().next()?.parse().ok()
            };
            (count("failed")? == 0).then(|| count("succeeded"))?
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn certificate(dir: &Path) -> anyhow::Result<()> {
    let subject = format!("/CN={HOST}");
    let names = format!("subjectAltName=DNS:{HOST}");
    let status = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "2",
        ])
        .args(["-subj", &subject, "-addext", &names, "-keyout"])
        .arg(dir.join("tls.key"))
        .arg("-out")
        .arg(dir.join("tls.crt"))
        .stderr(Stdio::null())
        .status()
        .context("openssl")?;
    if !status.success() {
        bail!("openssl made no certificate");
    }
    Ok(())
}

/// Both tools ask for the host by name; it must lead to this machine.
fn name_resolves() -> anyhow::Result<()> {
    let hosts = fs::read_to_string("/etc/hosts")?;
    if hosts.contains(HOST) {
        return Ok(());
    }
    let mut file = fs::OpenOptions::new().append(true).open("/etc/hosts").context(
        "the bench needs bench.example.com to lead to 127.0.0.1 in /etc/hosts; add it, or run as root",
    )?;
    writeln!(file, "127.0.0.1 {HOST}")?;
    Ok(())
}

fn proxy(dir: &Path, program: &Path, report: &mut String) -> anyhow::Result<()> {
    certificate(dir)?;
    name_resolves()?;
    fs::write(dir.join("big"), vec![b'x'; 64 * 1024])?;
    let (backend_port, nginx_port) = (free_port()?, free_port()?);
    let _backend = nginx(
        dir,
        "backend",
        "0",
        &backend_config(dir, backend_port),
        backend_port,
    )?;
    let rival = nginx(
        dir,
        "rival",
        "1",
        &proxy_config(dir, nginx_port, backend_port),
        nginx_port,
    )?;
    let (ours, our_port) = portcullis(dir, program, backend_port)?;
    let pid = |kill: &Kill| kill.0.id();
    writeln!(
        report,
        "| load | ours, µs | nginx, µs | ratio | aim | ours, requests/s | nginx, requests/s |"
    )?;
    writeln!(report, "| --- | --- | --- | --- | --- | --- | --- |")?;
    for scenario in &SCENARIOS {
        let (mut own, mut other, mut ratios, mut rates) =
            (vec![], vec![], vec![], (vec![], vec![]));
        for round in 0..ROUNDS {
            let first = measure(
                scenario,
                if round % 2 == 0 { our_port } else { nginx_port },
                pid(if round % 2 == 0 { &ours } else { &rival }),
            )?;
            let second = measure(
                scenario,
                if round % 2 == 0 { nginx_port } else { our_port },
                pid(if round % 2 == 0 { &rival } else { &ours }),
            )?;
            let (mine, theirs) = if round % 2 == 0 {
                (first, second)
            } else {
                (second, first)
            };
            own.push(mine.0);
            other.push(theirs.0);
            ratios.push(mine.0 / theirs.0);
            rates.0.push(mine.1);
            rates.1.push(theirs.1);
        }
        let line = format!(
            "| {} | {:.1} | {:.1} | {:.2} | {:.2} | {:.0} | {:.0} |",
            scenario.name,
            median(own),
            median(other),
            median(ratios),
            scenario.aim,
            median(rates.0),
            median(rates.1)
        );
        say(&line);
        writeln!(report, "{line}")?;
    }
    Ok(())
}

fn check(dir: &Path, program: &Path, report: &mut String) -> anyhow::Result<()> {
    let folder = dir.join("many");
    fs::create_dir_all(&folder)?;
    let mut text = String::from(
        "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 80}]}\n---\n",
    );
    for number in 0..10_000 {
        writeln!(
            text,
            "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: i{number}}}\nspec:\n  ingressClassName: ngrok\n  rules:\n  - host: h{number}.example.com\n    http: {{paths: [{{path: /, pathType: Prefix, backend: {{service: {{name: web, port: {{number: 80}}}}}}}}]}}\n---"
        )?;
        if number % 5 == 0 {
            writeln!(
                text,
                "apiVersion: v1\nkind: Secret\nmetadata: {{name: s{number}}}\nstringData: {{key: value}}\n---"
            )?;
        }
    }
    fs::write(folder.join("all.yaml"), text)?;
    let mut times = Vec::new();
    for _ in 0..3 {
        let begun = Instant::now();
        let status = Command::new(program)
            .args([
                "check",
                "-o",
                "json",
                "--service",
                "default/web:80=127.0.0.1:3000",
                "-f",
            ])
            .arg(&folder)
            .stdout(Stdio::null())
            .status()?;
        if !status.success() {
            bail!("check does not like the bench's manifests");
        }
        times.push(begun.elapsed().as_secs_f64());
    }
    let line = format!(
        "\n`check` on 10,000 Ingresses and 2,000 Secrets: {:.1} s (aim: 2 s).",
        median(times)
    );
    say(line.trim());
    writeln!(report, "{line}")?;
    Ok(())
}
