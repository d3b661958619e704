//! Built-in kinds: legal fields that nothing here reads are accepted, misspelt ones are not.

use resources::kinds::Kind::{
    ConfigMap, EndpointSlice, Ingress, IngressClass, Namespace, Secret, Service,
};
use serde_json::{Value, json};

use crate::{accepted, decoded, document, refused};

fn rule(path_type: &str, backend: &Value) -> Value {
    json!({"spec": {"rules": [{"host": "a.example.com", "http": {"paths": [
        {"path": "/", "pathType": path_type, "backend": backend},
    ]}}]}})
}

#[test]
fn ingresses() {
    let ingress = json!({"spec": {
        "ingressClassName": "ngrok",
        "defaultBackend": {"resource": {"apiGroup": "k8s.example.com", "kind": "Bucket", "name": "files"}},
        "rules": [
            {"host": "a.example.com", "http": {"paths": [
                {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "web", "port": {"number": 80}}}},
                {"pathType": "ImplementationSpecific", "backend": {"service": {"name": "web", "port": {"name": "http"}}}},
            ]}},
            {"host": "b.example.com"},
            {},
        ],
        "tls": [{"hosts": ["a.example.com"], "secretName": "a"}, {}],
    }});
    accepted(Ingress, &ingress, &ingress);
}

#[test]
fn nothing_is_absent_as_in_kubernetes() {
    accepted(
        Ingress,
        &json!({
            "metadata": {"name": "thing", "creationTimestamp": null, "annotations": null},
            "spec": {"ingressClassName": null, "rules": null, "defaultBackend": {"service": null, "resource": {"kind": "a", "name": "b"}}},
            "status": {"loadBalancer": {}, "whatever": 1},
        }),
        &json!({"spec": {"defaultBackend": {"resource": {"kind": "a", "name": "b"}}}}),
    );
}

#[test]
fn ingress_mistakes() {
    refused(
        Ingress,
        &json!({"spec": {"ingressClass": "ngrok"}}),
        &[
            "spec.ingressClass: unknown-field: there is no field ingressClass in spec (did you mean ingressClassName?)",
        ],
    );
    refused(
        Ingress,
        &rule(
            "prefix",
            &json!({"service": {"name": "web", "port": {"number": 0}}}),
        ),
        &[
            "spec.rules[0].http.paths[0].backend.service.port.number: out-of-range: 0 is not between 1 and 65535",
            r#"spec.rules[0].http.paths[0].pathType: not-allowed-value: "prefix" is not Exact, Prefix or ImplementationSpecific (did you mean Prefix?)"#,
        ],
    );
    refused(
        Ingress,
        &rule("Prefix", &json!({"serviceName": "web", "servicePort": 80})),
        &[
            "spec.rules[0].http.paths[0].backend.serviceName: unknown-field: there is no field serviceName in backend (an older form: write service: {name: …, port: {number: …}})",
            "spec.rules[0].http.paths[0].backend.servicePort: unknown-field: there is no field servicePort in backend (an older form: write service: {name: …, port: {number: …}})",
        ],
    );
    refused(
        Ingress,
        &rule("Prefix", &json!({"service": {"name": "web", "port": 80}})),
        &[
            "spec.rules[0].http.paths[0].backend.service.port: wrong-type: an object is needed here, not a number (write one field below it, with its name)",
        ],
    );
    refused(
        Ingress,
        &rule(
            "Prefix",
            &json!({"service": {"name": "web", "port": {"name": "http", "number": 80}}}),
        ),
        &[
            "spec.rules[0].http.paths[0].backend.service.port: choose-one: name and number exclude one another (keep exactly one)",
        ],
    );
    refused(
        Ingress,
        &json!({
            "metadata": {"name": "thing", "annotation": {"k8s.ngrok.com/modules": "auth"}},
            "spec": {"rules": [
                {"host": 1, "http": {"paths": []}},
                {"host": "a.example.com", "http": {}},
                {"hosts": "a.example.com", "paths": []},
                {"http": {"paths": [{"backend": {}}]}},
            ]},
        }),
        &[
            "metadata.annotation: unknown-field: there is no field annotation in metadata (did you mean annotations?)",
            "spec.rules[0].host: wrong-type: a text is needed here, not a number (put the value in quotes)",
            "spec.rules[0].http.paths: empty: the list is empty (name at least one entry)",
            "spec.rules[1].http.paths: missing-field: paths is missing: the paths",
            "spec.rules[2].hosts: unknown-field: there is no field hosts in rules (did you mean host?)",
            "spec.rules[2].paths: unknown-field: there is no field paths in rules (it belongs at spec.rules[].http.paths)",
            "spec.rules[3].http.paths[0].backend: choose-one: one of resource or service is needed here (write exactly one)",
            "spec.rules[3].http.paths[0].pathType: missing-field: pathType is missing: how it is compared",
        ],
    );
    refused(
        Ingress,
        &json!({"metadata": {"name": "thing", "annotations": {"k8s.ngrok.com/modules": null, "a": true}}, "spec": {}}),
        &[
            "metadata.annotations.a: wrong-type: a text is needed here, not true or false (put the value in quotes)",
            "metadata.annotations[k8s.ngrok.com/modules]: no-value: the entry has no value (write a value or remove the entry)",
        ],
    );
}

#[test]
fn ingress_classes() {
    accepted(
        IngressClass,
        &json!({"spec": {"controller": "k8s.ngrok.com/ingress-controller", "parameters": {"kind": "a", "name": "b"}}}),
        &json!({"spec": {"controller": "k8s.ngrok.com/ingress-controller", "parameters": {"kind": "a", "name": "b"}}}),
    );
    refused(
        IngressClass,
        &json!({"spec": {"controler": "k8s.ngrok.com/ingress-controller"}}),
        &[
            "spec.controler: unknown-field: there is no field controler in spec (did you mean controller?)",
        ],
    );
}

#[test]
fn services() {
    accepted(
        Service,
        &json!({"spec": {
            "clusterIP": "None",
            "selector": {"app": "web"},
            "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10}},
            "ports": [
                {"name": "http", "port": 80, "targetPort": "web", "nodePort": 30000, "appProtocol": "kubernetes.io/h2c"},
                {"name": "dns", "port": 53, "targetPort": 53, "protocol": "UDP"},
            ],
        }}),
        &json!({"spec": {
            "type": "ClusterIP",
            "clusterIP": "None",
            "ports": [
                {"name": "http", "port": 80, "protocol": "TCP", "appProtocol": "kubernetes.io/h2c"},
                {"name": "dns", "port": 53, "protocol": "UDP"},
            ],
        }}),
    );
    refused(
        Service,
        &json!({"spec": {
            "type": "Loadbalancer",
            "loadBalancerclass": "ngrok",
            "selectors": {"app": "web"},
            "ports": [{"port": 70000, "protocol": "tcp", "target_port": 80}, {"name": "http"}],
        }}),
        &[
            "spec.loadBalancerclass: unknown-field: there is no field loadBalancerclass in spec (did you mean loadBalancerClass?)",
            "spec.ports[0].port: out-of-range: 70000 is not between 1 and 65535",
            r#"spec.ports[0].protocol: not-allowed-value: "tcp" is not TCP, UDP or SCTP (did you mean TCP?)"#,
            "spec.ports[0].target_port: unknown-field: there is no field target_port in ports (did you mean targetPort?)",
            "spec.ports[1].port: missing-field: port is missing: its number",
            "spec.selectors: unknown-field: there is no field selectors in spec (did you mean selector?)",
            r#"spec.type: not-allowed-value: "Loadbalancer" is not ClusterIP, NodePort, LoadBalancer or ExternalName (did you mean LoadBalancer?)"#,
        ],
    );
}

#[test]
fn endpoint_slices() {
    accepted(
        EndpointSlice,
        &json!({
            "addressType": "IPv4",
            "endpoints": [
                {"addresses": ["10.0.0.1"], "conditions": {"ready": true, "serving": null}, "zone": "a", "hints": {"forZones": [{"name": "a"}]}},
                {"addresses": ["10.0.0.2"], "conditions": {}, "targetRef": {"kind": "Pod", "name": "web-1"}},
            ],
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP", "appProtocol": null}],
        }),
        &json!({
            "addressType": "IPv4",
            "endpoints": [
                {"addresses": ["10.0.0.1"], "conditions": {"ready": true}},
                {"addresses": ["10.0.0.2"], "conditions": {}},
            ],
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        }),
    );
    accepted(
        EndpointSlice,
        &json!({"addressType": "IPv6", "endpoints": null, "ports": null}),
        &json!({"addressType": "IPv6", "endpoints": []}),
    );
    refused(
        EndpointSlice,
        &json!({"addressType": "ipv4", "endpoints": [{"address": ["10.0.0.1"]}], "ports": [{"port": 0}]}),
        &[
            r#"addressType: not-allowed-value: "ipv4" is not IPv4, IPv6 or FQDN (did you mean IPv4?)"#,
            "endpoints[0].address: unknown-field: there is no field address in endpoints (did you mean addresses?)",
            "ports[0].port: out-of-range: 0 is not between 1 and 65535",
        ],
    );
}

#[test]
fn secrets() {
    accepted(
        Secret,
        &json!({"type": "Opaque", "immutable": true, "data": {"a": "YWJj", "b": "YW\nJj\n", "e": ""}, "stringData": {"b": "x", "c": ""}}),
        &json!({"type": "Opaque", "data": {"a": "YWJj", "b": "eA==", "c": "", "e": ""}}),
    );
    refused(
        Secret,
        &json!({"data": {"a": "pass word!", "b": 1, "c": null}, "stringdata": {"d": true}}),
        &[
            "data.a: bad-value: the value is not base64 (encode it, or write it in clear under stringData)",
            "data.b: wrong-type: a text is needed here, not a number (put the value in quotes)",
            "data.c: no-value: the entry has no value (write a value or remove the entry)",
            "stringdata: unknown-field: there is no field stringdata here (did you mean stringData?)",
            "stringdata.d: wrong-type: a text is needed here, not true or false (put the value in quotes)",
        ],
    );
}

#[test]
fn no_problem_repeats_a_secret() {
    let values = json!({"hunter2": "hunter2", "a": {"hunter2": "hunter2"}, "b": ["hunter2"], "c": "hunter2!"});
    let mut told = String::new();
    for content in [
        json!({"data": values}),
        json!({"stringData": values}),
        json!({"data": "hunter2"}),
        json!({"type": ["hunter2"]}),
    ] {
        let undecodable = decoded(Secret, document(Secret, &content)).expect_err("it is refused");
        for problem in undecodable.problems {
            told.push_str(&problem.message);
            told.push_str(&problem.remedy);
        }
    }
    assert!(!told.contains("hunter2"), "{told}");
}

#[test]
fn config_maps_and_namespaces() {
    accepted(
        ConfigMap,
        &json!({"data": {"ca.crt": "-----BEGIN"}, "binaryData": {"x": "YWJj"}, "immutable": false}),
        &json!({"data": {"ca.crt": "-----BEGIN"}}),
    );
    refused(
        ConfigMap,
        &json!({"data": {"a": 1}, "binaryData": {"x": "?"}}),
        &[
            "binaryData.x: bad-value: the value is not base64 (encode it, or write it in clear under stringData)",
            "data.a: wrong-type: a text is needed here, not a number (put the value in quotes)",
        ],
    );
    accepted(
        Namespace,
        &json!({"spec": {"finalizers": ["kubernetes"]}}),
        &json!({}),
    );
}
