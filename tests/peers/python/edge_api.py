"""Drives a served edge API with the official Python client, as a stranger would.

Creates, reads, pages, updates and deletes everything that this edge enforces, reads every property
of every object that comes back (which finds members that are missing in an answer), and asserts the
refusal of everything that it does not enforce.

Usage: edge_api.py BASE_URL, with the API key in PORTCULLIS_API_KEY.
"""

import os
import sys
from types import SimpleNamespace

import ngrok
from ngrok import datatypes as dt
from ngrok.error import Error, NotFoundError

CERTIFICATE = os.environ["TEST_CERTIFICATE_PEM"]
PRIVATE_KEY = os.environ["TEST_PRIVATE_KEY_PEM"]

read = 0


def read_all(value):
    """Reads every property of an object, and of those in it; returns the object."""
    global read
    if isinstance(value, (list, tuple)):
        for item in value:
            read_all(item)
    elif hasattr(value, "_props"):
        for name in dir(type(value)):
            if isinstance(getattr(type(value), name), property):
                read += 1
                try:
                    read_all(getattr(value, name))
                except KeyError as missing:
                    raise AssertionError(f"{type(value).__name__} has no member {missing}") from None
    return value


def same(got, wanted):
    assert got == wanted, f"{got!r} is not {wanted!r}"


def refused(code, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except Error as error:
        same((error.error_code, error.http_status_code), (code, 400))
        assert error.operation_id.startswith("op_"), error.details
        return error
    raise AssertionError(f"{call} was not refused with {code}")


def not_found(call, *arguments):
    try:
        call(*arguments)
    except NotFoundError as error:
        assert error.operation_id.startswith("op_"), error.details
        return
    raise AssertionError(f"{call}{arguments} was found")


def domains(api):
    domain = read_all(api.reserved_domains.create(domain="App.example.com", description="d"))
    same(domain.domain, "app.example.com")
    same((domain.region, list(domain.resolves_to)), ("", []))
    read_all(api.reserved_domains.get(domain.id))
    same(read_all(api.reserved_domains.update(domain.id, metadata="m")).metadata, "m")
    same(api.reserved_domains.get(domain.id).description, "d")
    refused("ERR_NGROK_413", api.reserved_domains.create, domain="app.example.com")
    refused(
        "not_available_at_this_edge",
        api.reserved_domains.create,
        domain="b.example.com",
        certificate_management_policy=dt.ReservedDomainCertPolicy(api, {"authority": "letsencrypt"}),
    )
    read_all(api.reserved_domains.create(domain="*.wild.example.com"))
    return domain


def backends(api):
    groups = api.backends.tunnel_group
    group = read_all(groups.create(labels={"app": "x"}))
    same(dict(groups.update(group.id, metadata="z").labels), {"app": "x"})
    same(dict(read_all(groups.update(group.id, labels={"app": "y"})).labels), {"app": "y"})

    fixed = read_all(api.backends.http_response.create(body="hi", headers={"X-A": "1"}))
    same((fixed.status_code, dict(fixed.headers)), (200, {"x-a": "1"}))
    fixed = api.backends.http_response.update(fixed.id, status_code=404)
    same((fixed.status_code, fixed.body), (404, "hi"))

    static = read_all(api.backends.static_address.create(address="10.0.0.1:80"))
    same(api.backends.static_address.update(static.id, metadata="x").address, "10.0.0.1:80")
    refused(
        "not_available_at_this_edge",
        api.backends.static_address.create,
        address="10.0.0.1:443",
        tls=dt.StaticBackendTLS(api, {"enabled": True}),
    )
    for client, backend in [
        (groups, group),
        (api.backends.http_response, fixed),
        (api.backends.static_address, static),
    ]:
        same(read_all(client.get(backend.id)).id, backend.id)
        same([each.id for each in client.list(limit="1")], [backend.id])
    for client in (api.backends.weighted, api.backends.failover):
        not_found(client.list)
    return group, fixed, static


def policies(api):
    policy = read_all(api.ip_policies.create(description="office"))
    same(read_all(api.ip_policies.update(policy.id, metadata="m")).description, "office")
    refused("ERR_NGROK_1400", api.ip_policies.update, policy.id)
    rules = api.ip_policy_rules
    rule = read_all(rules.create("10.0.0.0/8", policy.id, "allow"))
    same((rule.cidr, rule.action, rule.ip_policy.id), ("10.0.0.0/8", "allow", policy.id))
    same(read_all(rules.update(rule.id, cidr="10.1.0.0/16")).cidr, "10.1.0.0/16")
    for cidr, code in [
        ("10.0.0.1/8", "ERR_NGROK_1409"),
        ("10.0.0.1", "ERR_NGROK_1413"),
        ("x", "ERR_NGROK_1406"),
        ("10.1.0.0/16", "ERR_NGROK_1408"),
    ]:
        refused(code, rules.create, cidr, policy.id, "allow")
    refused("ERR_NGROK_1422", rules.create, "192.0.2.0/24", policy.id, "maybe")
    refused("ERR_NGROK_229", rules.create, "192.0.2.0/24", "office", "allow")
    denied = read_all(rules.create("10.1.2.0/24", policy.id, "deny"))
    same({each.id for each in rules.list(limit="1")}, {rule.id, denied.id})
    rules.delete(denied.id)
    not_found(rules.get, denied.id)
    return policy


def certificates(api):
    made = read_all(api.tls_certificates.create(CERTIFICATE, PRIVATE_KEY, description="c"))
    same(list(made.subject_alternative_names.dns_names), ["app.example.com"])
    same(read_all(api.tls_certificates.update(made.id, metadata="m")).description, "c")
    same([each.id for each in api.tls_certificates.list()], [made.id])
    refused("ERR_NGROK_1903", api.tls_certificates.create, CERTIFICATE, "x")
    api.tls_certificates.delete(made.id)
    not_found(api.tls_certificates.get, made.id)


def keys(api, base):
    made = read_all(api.api_keys.create(description="ci"))
    assert made.token, "the answer to its creation holds the key"
    other = ngrok.Client(made.token, base_url=base)
    read_all(other.api_keys.get(made.id))
    same(api.api_keys.get(made.id).token, None)
    same(api.api_keys.update(made.id, metadata="m").metadata, "m")
    api.api_keys.delete(made.id)
    try:
        other.api_keys.get(made.id)
    except Error as error:
        same((error.error_code, error.http_status_code), ("ERR_NGROK_203", 403))
    else:
        raise AssertionError("a deleted key still opens")


def edges(api):
    edge = read_all(
        api.edges.https.create(
            description="demo",
            hostports=["app.example.com:443"],
            tls_termination=dt.EndpointTLSTerminationAtEdge(api, {"min_version": "1.2"}),
        )
    )
    same((list(edge.hostports), list(edge.routes)), (["app.example.com:443"], []))
    same((edge.tls_termination.terminate_at, edge.mutual_tls), ("edge", None))
    refused("ERR_NGROK_7122", api.edges.https.create, hostports=["app.example.com:443"])
    refused("ERR_NGROK_7117", api.edges.https.create, hostports=["other.example.com:443"])
    refused("ERR_NGROK_7116", api.edges.https.create, hostports=["app.example.com:80"])
    # Covered by a reserved wildcard.
    read_all(api.edges.https.create(hostports=["a.wild.example.com:443"]))
    read_all(api.edges.https.create())
    pages = list(api.edges.https.list(limit="1"))
    same(len(pages), 3)
    read_all(pages)
    edge = api.edges.https.update(edge.id, metadata="n")
    same((edge.description, edge.metadata), ("demo", "n"))
    same(list(api.edges.https.update(edge.id, hostports=[]).hostports), [])
    same(api.edges.https.update(edge.id, description="").description, "")
    return api.edges.https.update(edge.id, hostports=["app.example.com:443"])


def tls_termination(api, edge):
    module = api.edge_modules.https_edge_tls_termination
    same(read_all(module.get(edge.id)).min_version, "1.2")
    for version in ("1.3", "1.2"):
        sent = dt.EndpointTLSTerminationAtEdge(api, {"min_version": version})
        same(read_all(module.replace(edge.id, sent)).min_version, version)
    refused(
        "ERR_NGROK_219",
        module.replace,
        edge.id,
        dt.EndpointTLSTerminationAtEdge(api, {"min_version": "1.0"}),
    )
    module.delete(edge.id)
    module.delete(edge.id)
    not_found(module.get, edge.id)
    same(module.replace(edge.id).enabled, True)


def route_modules(api, edge, route, backend, policy):
    cases = [
        ("backend", dt.EndpointBackendMutate, {"backend_id": backend.id}),
        ("ip_restriction", dt.EndpointIPPolicyMutate, {"ip_policy_ids": [policy.id]}),
        ("request_headers", dt.EndpointRequestHeaders, {"add": {"X-B": "2"}, "remove": ["X-C"]}),
        ("response_headers", dt.EndpointResponseHeaders, {"enabled": False, "add": {"X-D": "3"}}),
    ]
    for name, kind, props in cases:
        module = getattr(api.edge_modules, f"https_edge_route_{name}")
        put = read_all(module.replace(edge.id, route.id, kind(api, dict(props))))
        same(put.enabled, props.get("enabled", True))
        read_all(module.get(edge.id, route.id))
        module.delete(edge.id, route.id)
        module.delete(edge.id, route.id)
        not_found(module.get, edge.id, route.id)
        module.replace(edge.id, route.id, kind(api, dict(props)))
    module = api.edge_modules.https_edge_route_ip_restriction
    refused("ERR_NGROK_7025", module.replace, edge.id, route.id)


def refusals(api, edge, route):
    """Every module that the edge does not enforce is refused by name, and none is stored."""
    names = [
        "circuit_breaker",
        "compression",
        "webhook_verification",
        "oauth",
        "saml",
        "oidc",
        "websocket_tcp_converter",
        "user_agent_filter",
        "traffic_policy",
    ]
    # The client cannot write an OAuth object by itself: any object with plain members will do.
    anything = SimpleNamespace(_props={"enabled": True})
    for name in names:
        module = getattr(api.edge_modules, f"https_edge_route_{name}")
        error = refused("module_not_enforced", module.replace, edge.id, route.id, anything)
        same(error.details["module"], name)
        refused("module_not_enforced", module.replace, edge.id, route.id)
        update = api.edges.https_routes.update
        refused("module_not_enforced", update, edge.id, route.id, **{name: anything})
        not_found(module.get, edge.id, route.id)
        module.delete(edge.id, route.id)
        module.delete(edge.id, route.id)
    module = api.edge_modules.https_edge_mutual_tls
    error = refused("module_not_enforced", module.replace, edge.id, anything)
    same(error.details["module"], "mutual_tls")
    not_found(module.get, edge.id)
    module.delete(edge.id)
    for client in (api.edges.tcp, api.edges.tls, api.reserved_addrs, api.ip_restrictions):
        not_found(client.list)


def routes(api, edge, backend, policy):
    client = api.edges.https_routes
    route = read_all(
        client.create(edge.id, "path_prefix", "/", description="d", metadata="m")
    )
    same(route.backend, None)
    refused("ERR_NGROK_7126", client.create, edge.id, "path_prefix", "/")
    refused("ERR_NGROK_7131", client.create, edge.id, "path_prefix", "example.com")
    refused("ERR_NGROK_7130", client.create, edge.id, "regex", "/")
    # The same path under another match type is another route.
    exact = client.create(edge.id, "exact_path", "/")

    route_modules(api, edge, route, backend, policy)
    refusals(api, edge, route)
    before = client.get(edge.id, route.id)
    sent = dt.EndpointBackendMutate(api, {"backend_id": backend.id, "enabled": False})
    after = read_all(client.update(edge.id, route.id, backend=sent))
    same(after.backend.enabled, False)
    for name in ("description", "metadata", "match", "match_type"):
        same(getattr(after, name), getattr(before, name))
    for name in ("request_headers", "response_headers"):
        same(getattr(after, name)._props, getattr(before, name)._props)
    same([each.id for each in after.ip_restriction.ip_policies], [policy.id])
    same(len(read_all(api.edges.https.get(edge.id)).routes), 2)

    refused("ERR_NGROK_6502", api.backends.tunnel_group.delete, backend.id)
    refused("ERR_NGROK_1420", api.ip_policies.delete, policy.id)
    client.delete(edge.id, exact.id)
    not_found(client.get, edge.id, exact.id)


def main():
    base = sys.argv[1]
    api = ngrok.Client(os.environ["PORTCULLIS_API_KEY"], base_url=base)
    domain = domains(api)
    group, fixed, static = backends(api)
    policy = policies(api)
    certificates(api)
    keys(api, base)
    edge = edges(api)
    tls_termination(api, edge)
    routes(api, edge, group, policy)

    refused("ERR_NGROK_446", api.reserved_domains.delete, domain.id)
    for each in list(api.edges.https.list()):
        api.edges.https.delete(each.id)
    not_found(api.edges.https.get, edge.id)
    not_found(api.edges.https.delete, edge.id)
    for each in list(api.reserved_domains.list()):
        api.reserved_domains.delete(each.id)
    api.ip_policies.delete(policy.id)
    not_found(api.ip_policies.get, policy.id)
    api.backends.tunnel_group.delete(group.id)
    api.backends.http_response.delete(fixed.id)
    api.backends.static_address.delete(static.id)
    for client in (api.edges.https, api.reserved_domains, api.ip_policies, api.ip_policy_rules):
        same(list(client.list()), [])
    print(f"the official Python client is content: {read} properties read")


if __name__ == "__main__":
    main()
