//! How a call fails, byte by byte: an edge that answers from a script.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use controller::ports::{EdgeControl, EdgeError, Unavailable};
use edge_client::{ConnectOptions, EdgeAddress, KeySource, http::HttpEdge};
use edge_state::command::Command;
use model::{secret::Secret, time::Span};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

/// What a connection does with each call it reads: answers with these bytes, or with nothing, and
/// whether it ends then.
#[derive(Clone)]
enum Act {
    Answer(String),
    AnswerAndClose(String),
    Close,
    Hang,
}

struct Script {
    address: EdgeAddress,
    calls: Arc<AtomicUsize>,
    requests: Arc<std::sync::Mutex<Vec<String>>>,
}

/// Serves the acts in their order, one a call, over as many connections as come.
async fn script(acts: Vec<Act>) -> Script {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
    let address = EdgeAddress::loopback(listener.local_addr().expect("bound")).expect("loopback");
    let calls = Arc::new(AtomicUsize::new(0));
    let requests = Arc::new(std::sync::Mutex::new(Vec::new()));
    let (counter, seen) = (Arc::clone(&calls), Arc::clone(&requests));
    let acts = Arc::new(acts);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acts, counter, seen) =
                (Arc::clone(&acts), Arc::clone(&counter), Arc::clone(&seen));
            tokio::spawn(async move { perform(stream, &acts, &counter, &seen).await });
        }
    });
    Script {
        address,
        calls,
        requests,
    }
}

async fn perform(
    mut stream: TcpStream,
    acts: &[Act],
    calls: &AtomicUsize,
    seen: &std::sync::Mutex<Vec<String>>,
) {
    while let Some(request) = read_request(&mut stream).await {
        seen.lock().expect("no panic").push(request);
        let act = acts
            .get(calls.fetch_add(1, Ordering::SeqCst))
            .cloned()
            .unwrap_or(Act::Hang);
        match act {
            Act::Answer(bytes) => stream.write_all(bytes.as_bytes()).await.expect("sent"),
            Act::AnswerAndClose(bytes) => {
                stream.write_all(bytes.as_bytes()).await.expect("sent");
                return;
            }
            Act::Close => return,
            Act::Hang => std::future::pending().await,
        }
    }
}

/// One request, head and body; nothing when the client has gone.
async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.map_or(0, |text| text.parse().expect("a length"));
            if body.len() >= length {
                return Some(text);
            }
        }
        let mut chunk = [0; 4096];
        match stream.read(&mut chunk).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
        }
    }
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}\r\n{body}",
        body.len()
    )
}

fn receipt() -> Act {
    Act::Answer(answer("200 OK", "", r#"{"revision":1,"now":2}"#))
}

fn edge(script: &Script) -> HttpEdge {
    let mut options = ConnectOptions::new(script.address.clone());
    options.call_timeout = Duration::from_millis(300);
    options.answer_bytes_max = 1000;
    HttpEdge::new(options, KeySource::Text(Secret::new("KEY".to_owned()))).expect("a client")
}

async fn write(edge: &HttpEdge) -> Result<u64, EdgeError> {
    edge.apply(1, Command::CloseOverdue)
        .await
        .map(|receipt| receipt.revision)
}

fn unavailable(result: Result<impl std::fmt::Debug, EdgeError>) -> Unavailable {
    let error = result.expect_err("no answer that counts");
    let told = match error {
        EdgeError::Unavailable(unavailable) => Ok(unavailable),
        other => Err(other),
    };
    told.expect("unavailable")
}

#[tokio::test]
async fn one_connection_serves_call_after_call() {
    let script = script(vec![receipt(), receipt(), receipt()]).await;
    let edge = edge(&script);
    for _ in 0..3 {
        assert_eq!(write(&edge).await, Ok(1));
    }
    let requests = script.requests.lock().expect("no panic").clone();
    assert_eq!(requests.len(), 3);
    for request in requests {
        assert!(
            request.starts_with("POST /portcullis/v1/commands HTTP/1.1\r\n"),
            "{request}"
        );
        for header in [
            "portcullis-term: 1",
            "authorization: Bearer KEY",
            "ngrok-version: 2",
        ] {
            assert!(request.contains(header), "{header} in {request}");
        }
        assert!(
            request.ends_with(r#"{"command":"close_overdue"}"#),
            "{request}"
        );
    }
}

#[tokio::test]
async fn a_lost_answer_is_never_taken_for_a_call_that_was_not_made() {
    let truncated = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"rev".to_owned();
    let large = answer("200 OK", "", &"x".repeat(2000));
    for act in [
        Act::Close,
        Act::Hang,
        Act::AnswerAndClose(truncated),
        Act::Answer(large),
    ] {
        let script = script(vec![act]).await;
        let told = unavailable(write(&edge(&script)).await);
        assert!(told.may_have_applied, "{told:?}");
        assert_eq!(
            script.calls.load(Ordering::SeqCst),
            1,
            "a write is never sent twice"
        );
    }
    let garbage = script(vec![Act::Answer(answer("200 OK", "", "<html>"))]).await;
    assert!(unavailable(write(&edge(&garbage)).await).may_have_applied);
}

#[tokio::test]
async fn a_read_changes_nothing_and_an_edge_that_is_not_there_neither() {
    let script = script(vec![Act::Close, Act::Close, Act::Close]).await;
    assert!(!unavailable(edge(&script).read().await).may_have_applied);
    let nobody = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
    let address = EdgeAddress::loopback(nobody.local_addr().expect("bound")).expect("loopback");
    drop(nobody);
    let edge = HttpEdge::new(
        ConnectOptions::new(address),
        KeySource::Text(Secret::new("K".to_owned())),
    );
    assert!(!unavailable(write(&edge.expect("a client")).await).may_have_applied);
}

#[tokio::test]
async fn a_kept_connection_that_has_ended_is_replaced_before_anything_is_sent() {
    let closing = Act::Answer(answer(
        "200 OK",
        "connection: close\r\n",
        r#"{"revision":1,"now":2}"#,
    ));
    let script = script(vec![closing, receipt()]).await;
    let edge = edge(&script);
    assert_eq!(write(&edge).await, Ok(1));
    assert_eq!(write(&edge).await, Ok(1));
    assert_eq!(script.calls.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn retry_after_is_heard() {
    let body = r#"{"status_code":503,"msg":"m","details":{"may_have_applied":"false"}}"#;
    let seconds = Act::Answer(answer(
        "503 Service Unavailable",
        "retry-after: 7\r\n",
        body,
    ));
    let past = "retry-after: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    let date = Act::Answer(answer("503 Service Unavailable", past, body));
    let plain = Act::Answer(answer("503 Service Unavailable", "", "busy"));
    let script = script(vec![seconds, date, plain]).await;
    let edge = edge(&script);
    let wanted = [
        (Some(Span::from_secs(7)), false),
        (Some(Span::ZERO), false),
        (None, true),
    ];
    for (retry_after, may_have_applied) in wanted {
        let told = unavailable(write(&edge).await);
        assert_eq!(
            (told.retry_after, told.may_have_applied),
            (retry_after, may_have_applied)
        );
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed_with_the_key() {
    let elsewhere = "location: http://127.0.0.1:1/\r\n";
    let script = script(vec![Act::Answer(answer(
        "307 Temporary Redirect",
        elsewhere,
        "",
    ))])
    .await;
    let result = write(&edge(&script)).await;
    assert!(matches!(result, Err(EdgeError::Refused(_))), "{result:?}");
}

#[tokio::test]
async fn a_refused_key_is_read_again_from_its_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("controller-key");
    std::fs::write(&path, "OLD\n").expect("written");
    let refused = r#"{"error_code":"ERR_NGROK_203","status_code":403,"msg":"m","details":{}}"#;
    let script = script(vec![
        Act::Answer(answer("403 Forbidden", "", refused)),
        receipt(),
    ])
    .await;
    let edge = HttpEdge::new(
        ConnectOptions::new(script.address.clone()),
        KeySource::File(path.clone()),
    );
    let edge = edge.expect("a client");
    let result = write(&edge).await;
    assert!(
        matches!(result, Err(EdgeError::Credentials(_))),
        "{result:?}"
    );
    std::fs::write(&path, "NEW\n").expect("written");
    tokio::time::timeout(Duration::from_secs(10), edge.credentials_changed())
        .await
        .expect("noticed");
    assert_eq!(write(&edge).await, Ok(1));
    let requests = script.requests.lock().expect("no panic").clone();
    assert!(
        requests[0].contains("Bearer OLD") && requests[1].contains("Bearer NEW"),
        "{requests:?}"
    );
}
