//! How long `check` takes on many objects.

use std::{
    fmt::Write as _,
    fs,
    path::Path,
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::bail;

use crate::run::say;

pub(super) const INGRESSES: usize = 10_000;
pub(super) const SECRETS: usize = 2_000;
pub(super) const AIM_SECONDS: f64 = 2.0;
const RUNS: usize = 5;

/// Seconds that `check` took, run by run.
pub(super) fn measure(dir: &Path, program: &Path) -> anyhow::Result<Vec<f64>> {
    let folder = dir.join("many");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("all.yaml"), manifests()?)?;
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let begun = Instant::now();
        let status = Command::new(program)
            .args(["check", "-o", "json", "-f"])
            .arg(&folder)
            .args(["--service", "default/web:80=127.0.0.1:3000"])
            .stdout(Stdio::null())
            .status()?;
        times.push(begun.elapsed().as_secs_f64());
        if !status.success() {
            bail!("check does not like the benchmark's manifests");
        }
    }
    say(&format!("check took {times:.2?} s"));
    Ok(times)
}

fn manifests() -> anyhow::Result<String> {
    let mut text = String::from(
        "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 80}]}\n",
    );
    for number in 0..INGRESSES {
        write!(
            text,
            "---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: i{number}}}\nspec:\n  \
             ingressClassName: ngrok\n  rules:\n  - host: h{number}.example.com\n    http: {{paths: [{{path: /, \
             pathType: Prefix, backend: {{service: {{name: web, port: {{number: 80}}}}}}}}]}}\n"
        )?;
    }
    for number in 0..SECRETS {
        write!(
            text,
            "---\napiVersion: v1\nkind: Secret\nmetadata: {{name: s{number}}}\nstringData: {{key: value}}\n"
        )?;
    }
    Ok(text)
}
