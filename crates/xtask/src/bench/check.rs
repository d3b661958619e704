//! How long `check` takes on many objects.

use std::{
    fmt::Write as _,
    fs,
    path::Path,
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::{Context as _, bail};

use crate::run::say;

pub(super) const INGRESSES: usize = 10_000;
pub(super) const SECRETS: usize = 2_000;
pub(super) const AIM_SECONDS: f64 = 2.0;
const RUNS: usize = 5;

/// Seconds that `check` took, run by run.
pub(super) struct Times {
    pub(super) elapsed: Vec<f64>,
    /// Of processor time: what else runs on the machine plays little part.
    pub(super) processor: Vec<f64>,
}

pub(super) fn measure(dir: &Path, program: &Path) -> anyhow::Result<Times> {
    let folder = dir.join("many");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("all.yaml"), manifests()?)?;
    let mut times = Times {
        elapsed: Vec::new(),
        processor: Vec::new(),
    };
    for _ in 0..RUNS {
        let begun = Instant::now();
        // The shell says how long its children ran.
        let output = Command::new("sh")
            .args(["-c", "\"$@\" >/dev/null && times", "sh"])
            .arg(program)
            .args(["check", "-o", "json", "-f"])
            .arg(&folder)
            .args(["--service", "default/web:80=127.0.0.1:3000"])
            .stderr(Stdio::inherit())
            .output()?;
        times.elapsed.push(begun.elapsed().as_secs_f64());
        if !output.status.success() {
            bail!("check does not like the benchmark's manifests");
        }
        let said = String::from_utf8_lossy(&output.stdout);
        let children = said.lines().last().and_then(processor_seconds);
        times
            .processor
            .push(children.context("the shell tells times")?);
    }
    say(&format!("check took {:.2?} s", times.processor));
    Ok(times)
}

/// Reads "0m1.50s 0m0.25s": in user code and in the kernel.
fn processor_seconds(line: &str) -> Option<f64> {
    line.split_whitespace()
        .map(|time| {
            let (minutes, seconds) = time.strip_suffix('s')?.split_once('m')?;
            Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
        })
        .sum()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_s_times_are_understood() {
        assert_eq!(processor_seconds("1m1.50s 0m0.250s"), Some(61.75));
        assert_eq!(processor_seconds("1m1.50s what"), None);
    }
}
