//! Both sides and the backend behind them: nginx with the work that a route of ours does, the
//! product itself on HTTPS, and on plain TCP the program that serves what the product left.

use std::{
    fmt, fs,
    io::{BufRead as _, BufReader},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};

use super::{loads::Port, on_core, which};

/// Leads to this machine wherever the benchmark runs.
pub(super) const HOST: &str = "localhost";
/// Where the load and the backend run.
pub(super) const CORE_OF_LOAD: &str = "0";
/// Where both proxies run.
const CORE_OF_PROXY: &str = "1";

/// Everything that runs, for as long as this lives.
pub(super) struct Sides {
    pub(super) ours: [Server; 2],
    pub(super) rival: [Server; 2],
    _processes: [Process; 4],
}

/// A port that answers the loads, and the process behind it.
#[derive(Clone, Copy)]
pub(super) struct Server {
    pub(super) port: Port,
    pub(super) number: u16,
    pub(super) process: u32,
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            port,
            number,
            process,
        } = self;
        write!(f, "{}://{HOST}:{number} (process {process})", port.scheme())
    }
}

/// Ends with its owner.
struct Process(Child);

impl Process {
    fn serves(&self, port: Port, number: u16) -> Server {
        Server {
            port,
            number,
            process: self.0.id(),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts everything.
pub(super) fn start(dir: &Path, program: &Path, in_clear: &Path) -> anyhow::Result<Sides> {
    certificate(dir)?;
    fs::write(dir.join("big"), vec![b'x'; 64 * 1024])?;
    let (behind, plain, tls) = (free_port()?, free_port()?, free_port()?);
    let backend = backend_config(dir, behind);
    let backend = nginx(dir, "backend", CORE_OF_LOAD, &backend, behind)?;
    let config = proxy_config(dir, plain, tls, behind);
    let nginx = nginx(dir, "rival", CORE_OF_PROXY, &config, tls)?;
    let (product, https) = product(dir, program, behind)?;
    let (clear, http) = in_clear_copy(dir, in_clear)?;
    Ok(Sides {
        ours: [
            clear.serves(Port::Plain, http),
            product.serves(Port::Tls, https),
        ],
        rival: [
            nginx.serves(Port::Plain, plain),
            nginx.serves(Port::Tls, tls),
        ],
        _processes: [backend, nginx, product, clear],
    })
}

fn free_port() -> anyhow::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

fn wait_for(port: u16) -> anyhow::Result<()> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let begun = Instant::now();
    while TcpStream::connect(address).is_err() {
        if begun.elapsed() > Duration::from_secs(10) {
            bail!("nothing listens on {address}");
        }
        std::thread::park_timeout(Duration::from_millis(20));
    }
    Ok(())
}

fn nginx(dir: &Path, name: &str, core: &str, config: &str, port: u16) -> anyhow::Result<Process> {
    let home = dir.join(name);
    fs::create_dir_all(&home)?;
    let file = home.join("nginx.conf");
    fs::write(&file, config)?;
    let program = which("nginx").context("nginx is installed")?;
    let child = on_core(core, &program)
        .arg("-p")
        .arg(&home)
        .arg("-c")
        .arg(&file)
        .spawn()?;
    let child = Process(child);
    wait_for(port)?;
    Ok(child)
}

/// nginx stays one process, so that its time is that of one process, and needs no rights.
const NGINX: &str = "daemon off; master_process off; worker_processes 1; pid nginx.pid;
error_log error.log;
events { worker_connections 4096; }
http { access_log off; keepalive_requests 100000000; default_type text/plain; sendfile on;
client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;";

fn backend_config(dir: &Path, port: u16) -> String {
    let (dir, body) = (dir.display(), "x".repeat(128));
    format!(
        "{NGINX}\nserver {{ listen 127.0.0.1:{port}; root {dir};\n\
         location = /small {{ return 200 \"{body}\"; }} }} }}\n"
    )
}

/// The work of the route in [`manifest`], and what ours does on every route. The buffers hold the
/// big answer, so that nginx writes none of it to a file.
fn proxy_config(dir: &Path, plain: u16, tls: u16, backend: u16) -> String {
    let dir = dir.display();
    format!(
        "{NGINX}\nupstream backend {{ server 127.0.0.1:{backend}; keepalive 128; keepalive_requests 100000000; }}\n\
         server {{ listen 127.0.0.1:{plain}; listen 127.0.0.1:{tls} ssl http2; server_name {HOST};\n\
         ssl_certificate {dir}/tls.crt; ssl_certificate_key {dir}/tls.key; ssl_protocols TLSv1.3;\n\
         location / {{ allow 127.0.0.0/8; deny all; add_header x-frame-options DENY;\n\
         proxy_set_header x-set bench; proxy_set_header x-forwarded-for $remote_addr;\n\
         proxy_set_header x-forwarded-proto $scheme; proxy_set_header x-forwarded-host $host;\n\
         proxy_set_header x-request-id $request_id; proxy_set_header host $host;\n\
         proxy_set_header connection \"\"; proxy_http_version 1.1; proxy_pass http://backend;\n\
         proxy_buffers 8 16k; proxy_buffer_size 16k; proxy_busy_buffers_size 64k; }} }} }}\n"
    )
}

const MANIFEST: &str = "\
apiVersion: ingress.k8s.ngrok.com/v1alpha1
kind: IPPolicy
metadata: {name: here}
spec: {rules: [{cidr: 127.0.0.0/8, action: allow}]}
---
apiVersion: ingress.k8s.ngrok.com/v1alpha1
kind: NgrokModuleSet
metadata: {name: set}
modules:
  ipRestriction: {policies: [here]}
  headers:
    request: {add: {x-set: bench}}
    response: {add: {x-frame-options: DENY}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ports: [{port: 80}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, annotations: {k8s.ngrok.com/modules: set}}
spec:
  ingressClassName: ngrok
  tls: [{hosts: [HOST], secretName: tls}]
  rules:
  - host: HOST
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}
---
apiVersion: v1
kind: Secret
metadata: {name: tls}
type: kubernetes.io/tls
stringData:
";

fn manifest(dir: &Path) -> anyhow::Result<String> {
    let mut text = MANIFEST.replace("HOST", HOST);
    for name in ["tls.crt", "tls.key"] {
        text.push_str(&format!("  {name}: |\n"));
        for line in fs::read_to_string(dir.join(name))?.lines() {
            text.push_str(&format!("    {line}\n"));
        }
    }
    Ok(text)
}

/// Starts `portcullis up` and waits until its route is open.
fn product(dir: &Path, program: &Path, backend: u16) -> anyhow::Result<(Process, u16)> {
    let (data, file) = (dir.join("data"), dir.join("bench.yaml"));
    fs::write(&file, manifest(dir)?)?;
    if data.exists() {
        fs::remove_dir_all(&data)?;
    }
    let https = free_port()?;
    let mut command = on_core(CORE_OF_PROXY, program);
    command.args(["--log", "error", "up", "-o", "json", "--workers", "1"]);
    for listener in ["--http", "--api", "--admin"] {
        command.args([listener, "127.0.0.1:0"]);
    }
    let child = command
        .args(["--https", &format!("127.0.0.1:{https}")])
        .args(["--service", &format!("default/web:80=127.0.0.1:{backend}")])
        .arg("--data-dir")
        .arg(&data)
        .arg("-f")
        .arg(&file)
        .stdout(Stdio::piped())
        .spawn()?;
    let mut child = Process(child);
    let events = child.0.stdout.take().context("it is piped")?;
    for line in BufReader::new(events).lines() {
        let line = line?;
        if line.contains("\"to\":\"open\"") {
            return Ok((child, https));
        }
        if line.contains("\"to\":\"closed\"") {
            bail!("the benchmark's route does not open: {line}");
        }
    }
    bail!("portcullis ended")
}

/// Starts the program that serves on plain TCP what the product has saved. The copy is what a
/// killed process leaves: a data directory has one owner.
fn in_clear_copy(dir: &Path, program: &Path) -> anyhow::Result<(Process, u16)> {
    let copy = dir.join("data-in-clear");
    if copy.exists() {
        fs::remove_dir_all(&copy)?;
    }
    let mut copied = Command::new("cp");
    copied.arg("-a").arg(dir.join("data")).arg(&copy);
    if !copied.status()?.success() {
        bail!("the data directory cannot be copied");
    }
    let http = free_port()?;
    let child = on_core(CORE_OF_PROXY, program)
        .arg(&copy)
        .arg(format!("127.0.0.1:{http}"))
        .spawn()?;
    let child = Process(child);
    wait_for(http)?;
    Ok((child, http))
}

fn certificate(dir: &Path) -> anyhow::Result<()> {
    let status = Command::new("openssl")
        .args(["req", "-x509", "-nodes", "-days", "2", "-newkey", "ec"])
        .args(["-pkeyopt", "ec_paramgen_curve:P-256"])
        .args(["-subj", &format!("/CN={HOST}")])
        .args(["-addext", &format!("subjectAltName=DNS:{HOST}")])
        .arg("-keyout")
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
