//! Bodies at the edge API, as every reader of them takes them.

#![no_main]

use edge_api::{
    api_key, backend, certificate, domain, edge, ip_policy, json::Members, module, route,
};
use edge_state::command::Command;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let body = || Members::read(bytes);
    if body().is_err() {
        return;
    }
    let _ = body().and_then(edge::EdgePatch::read_create);
    let _ = body().and_then(|members| route::RouteReplacement::read_create(members, "edghts_1"));
    let _ = body().and_then(|members| api_key::read_update(members, "ak_1"));
    let _ = body().and_then(backend::read_endpoints);
    let _ = body().and_then(|members| certificate::read_update(members, "cert_1"));
    let _ = body().and_then(domain::read_create);
    let _ = body().and_then(ip_policy::read_create);
    let _ = body().and_then(module::read_backend);
    let _ = body().and_then(module::read_tls_termination);
    let _ = body().and_then(module::read_ip_restriction);
    let _ = body().and_then(module::read_headers);
    let _ = serde_json::from_slice::<Command>(bytes);
});
