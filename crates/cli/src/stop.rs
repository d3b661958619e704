//! Being told to stop: SIGINT and SIGTERM begin an orderly end, a second one ends at once.

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

/// A receiver that turns true when the process is told to stop.
///
/// # Errors
/// When the signals cannot be had.
pub(crate) fn on_signal() -> std::io::Result<watch::Receiver<bool>> {
    let (sender, receiver) = watch::channel(false);
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::spawn(async move {
        for _ in 0..2 {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if *sender.borrow() {
                tracing::warn!("told to stop twice; ending at once");
                std::process::exit(130);
            }
            tracing::info!("stopping");
            sender.send_replace(true);
        }
    });
    Ok(receiver)
}
