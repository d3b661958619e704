//! Where a Service is reached: EndpointSlices in the manifests, and `--service`, which wins over
//! them and names a port by number or by name.

mod common;

use std::{net::SocketAddr, time::Duration};

use common::Place;
use model::status::RouteState;
use testkit::{backend::Backend, wait::until};

const HOST: &str = "web.example.com";
const LIMIT: Duration = Duration::from_secs(30);

/// A Service with a named port, and an Ingress that refers to the port by that name.
fn declared() -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: web}}\n\
         spec: {{ports: [{{name: http, port: 80}}]}}\n---\n\
         apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: web}}\nspec:\n\
         \x20 ingressClassName: ngrok\n  rules:\n  - host: {HOST}\n    http:\n      paths:\n\
         \x20     - {{path: /, pathType: Prefix, backend: {{service: {{name: web, port: {{name: http}}}}}}}}\n---\n"
    )
}

fn slice(address: SocketAddr) -> String {
    format!(
        "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata:\n  name: web-1\n\
         \x20 labels: {{kubernetes.io/service-name: web}}\naddressType: IPv4\n\
         ports: [{{name: http, port: {}}}]\nendpoints: [{{addresses: [\"{}\"]}}]\n",
        address.port(),
        address.ip()
    )
}

#[test]
fn endpoints_come_from_slices_until_a_flag_says_otherwise() {
    let [of_slice, of_flag] = ["slice", "flag"].map(Backend::start);
    let place = Place::new();
    place.write("web.yaml", &declared());
    let by_flag = format!("default/web:http={}", of_flag.address);
    for (flags, wanted, other) in [
        (vec![], &of_slice, &of_flag),
        (vec!["--service", by_flag.as_str()], &of_flag, &of_slice),
    ] {
        let portcullis = place.up(&flags);
        let _open = portcullis.wait_route(HOST, "/", RouteState::Open);
        if flags.is_empty() {
            // Open and empty: it says so, and fills without being declared anew.
            let answer = portcullis.client().get(HOST, "/").expect("an answer");
            assert_eq!(answer.status, 503, "{}", answer.text());
            assert_eq!(
                answer.header("ngrok-error-code"),
                Some("ERR_PORTCULLIS_NO_ENDPOINTS")
            );
            place.write("slice.yaml", &slice(of_slice.address));
        }
        let (before, others) = (wanted.requests(), other.requests());
        until("the backend answers", LIMIT, || {
            match portcullis.client().get(HOST, "/") {
                Ok(answer) if answer.status == 200 => Ok(()),
                answer => Err(format!("{answer:?}")),
            }
        });
        assert!(wanted.requests() > before, "{flags:?}");
        assert_eq!(other.requests(), others, "{flags:?}");
    }
}
