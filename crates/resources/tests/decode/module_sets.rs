//! NgrokModuleSet: every module, and every mistake that once opened a route.

use resources::kinds::Kind::NgrokModuleSet;
use serde_json::{Value, json};

use crate::{accepted, refused};

/// A module that is right, and what it means.
#[track_caller]
fn module(content: &Value, expected: &Value) {
    accepted(
        NgrokModuleSet,
        &json!({"modules": content}),
        &json!({"modules": expected}),
    );
}

/// A module set that is wrong.
#[track_caller]
fn wrong(modules: &Value, expected: &[&str]) {
    refused(NgrokModuleSet, &json!({"modules": modules}), expected);
}

#[test]
fn the_sample_of_upstreams_documentation_decodes() {
    module(
        &json!({"oauth": {"google": {
            "optionsPassthrough": true,
            "inactivityTimeout": "10m",
            "maximumDuration": "24h",
            "authCheckInterval": "20m",
            "clientSecret": {"name": "auth", "key": "client-secret"},
            "emailDomains": ["ngrok.com"],
        }}}),
        &json!({"oauth": {"google": {
            "optionsPassthrough": true,
            "cookiePrefix": "",
            "inactivityTimeout": "10m0s",
            "maximumDuration": "24h0m0s",
            "authCheckInterval": "20m0s",
            "clientSecret": {"name": "auth", "key": "client-secret"},
            "emailDomains": ["ngrok.com"],
        }}}),
    );
}

#[test]
fn circuit_breakers() {
    module(
        &json!({"circuitBreaker": {
            "trippedDuration": "1.5h",
            "rollingWindow": "1m",
            "numBuckets": 12,
            "volumeThreshold": 20,
            "errorThresholdPercentage": "200m",
        }}),
        &json!({"circuitBreaker": {
            "trippedDuration": "1h30m0s",
            "rollingWindow": "1m0s",
            "numBuckets": 12,
            "volumeThreshold": 20,
            "errorThresholdPercentage": "0.2",
        }}),
    );
    module(
        &json!({"circuitBreaker": {"errorThresholdPercentage": 1}}),
        &json!({"circuitBreaker": {
            "trippedDuration": "0s",
            "rollingWindow": "0s",
            "volumeThreshold": 0,
            "errorThresholdPercentage": "1",
        }}),
    );
    wrong(
        &json!({"circuitBreaker": {
            "trippedDuration": "-10s",
            "rollingWindow": "900ms",
            "numBuckets": 129,
            "volumeThreshold": -1,
            "errorThresholdPercentage": 50,
        }}),
        &[
            "modules.circuitBreaker.errorThresholdPercentage: bad-quantity: 50 is not between 0 and 1 (despite its name the field is a fraction, not percent: write 0.25 for a quarter)",
            "modules.circuitBreaker.numBuckets: out-of-range: 129 is not between 1 and 128",
            r#"modules.circuitBreaker.rollingWindow: bad-duration: "900ms" is less than a second (the edge counts whole seconds: write 1s or more)"#,
            r#"modules.circuitBreaker.trippedDuration: bad-duration: "-10s" is negative (write a duration of zero or more; zero means no limit)"#,
            "modules.circuitBreaker.volumeThreshold: out-of-range: -1 is not between 0 and 4294967295",
        ],
    );
    wrong(
        &json!({"circuitBreaker": {
            "trippedDuration": 10,
            "rollingWindow": "10",
            "numBuckets": "12",
            "volumeThreshold": 4_294_967_296_u64,
            "errorThresholdPercentage": "half",
        }}),
        &[
            r#"modules.circuitBreaker.errorThresholdPercentage: bad-quantity: "half" is not a quantity (write a number between 0 and 1, such as "0.25" or "250m")"#,
            "modules.circuitBreaker.numBuckets: wrong-type: a whole number is needed here, not a text (remove the quotes)",
            r#"modules.circuitBreaker.rollingWindow: bad-duration: "10" lacks a unit (add the unit: 10s, 10m or 10h)"#,
            "modules.circuitBreaker.trippedDuration: wrong-type: a text is needed here, not a number (put the value in quotes)",
            "modules.circuitBreaker.volumeThreshold: out-of-range: 4294967296 is not between 0 and 4294967295",
        ],
    );
}

#[test]
fn compression() {
    module(
        &json!({"compression": {"enabled": false}}),
        &json!({"compression": {"enabled": false}}),
    );
    wrong(
        &json!({"compression": {}}),
        &[
            "modules.compression.enabled: missing-field: enabled is missing: whether responses are compressed",
        ],
    );
    wrong(
        &json!({"compression": {"enabled": "true"}}),
        &[
            "modules.compression.enabled: wrong-type: true or false is needed here, not a text (remove the quotes)",
        ],
    );
}

#[test]
fn headers() {
    let changes = json!({"headers": {
        "request": {"add": {"X-Env": "prod"}, "remove": ["X-Debug"]},
        "response": {"remove": ["Server"]},
    }});
    module(&changes, &changes);
    wrong(
        &json!({"headers": {"add": {"X-Env": "prod"}}}),
        &[
            "modules.headers.add: unknown-field: there is no field add in headers (it belongs at modules.headers.request.add or modules.headers.response.add)",
        ],
    );
    wrong(
        &json!({"headers": {"request": {}, "response": {"add": {}}}}),
        &[
            "modules.headers.request: empty: nothing stands in it, so it would do nothing (fill it in or remove it)",
        ],
    );
    wrong(
        &json!({"headers": {"request": {
            "add": {"X-Env": 1, "X A": "b", "X-A": "a", "x-a": "b", "X-B": "a\nb", "X-C": " a"},
            "remove": ["X-Debug:"],
        }}}),
        &[
            "modules.headers.request.add.X-B: bad-value: the value holds a line break or another control character (write the value on one line)",
            "modules.headers.request.add.X-C: bad-value: the value begins or ends with a blank (remove the blanks around it)",
            "modules.headers.request.add.X-Env: wrong-type: a text is needed here, not a number (put the value in quotes)",
            "modules.headers.request.add.x-a: duplicate: x-a is added twice: names of headers do not differ by case (keep one of them)",
            r#"modules.headers.request.add[X A]: bad-value: "X A" is not the name of a header (write letters, digits and hyphens only)"#,
            r#"modules.headers.request.remove[0]: bad-value: "X-Debug:" is not the name of a header (write letters, digits and hyphens only)"#,
        ],
    );
    wrong(
        &json!({"headers": {"request": {"remove": "Server"}}}),
        &[
            "modules.headers.request.remove: wrong-type: a list is needed here, not a text (write a list, with a hyphen before each entry)",
        ],
    );
}

#[test]
fn ip_restrictions() {
    let policies =
        json!({"ipRestriction": {"policies": ["office", "ipp_2KZtV8hrTPdf0Q0lS4LCDGosGXl"]}});
    module(&policies, &policies);
    wrong(
        &json!({"ipRestriction": {}}),
        &[
            "modules.ipRestriction.policies: missing-field: policies is missing: names of IPPolicies in the same namespace, or ids of policies at the edge",
        ],
    );
    wrong(
        &json!({"ipRestriction": {"policies": []}}),
        &["modules.ipRestriction.policies: empty: the list is empty (name at least one entry)"],
    );
    wrong(
        &json!({"ipRestriction": {"policies": ["office", " "]}}),
        &["modules.ipRestriction.policies[1]: empty: the text is empty (write a value)"],
    );
    wrong(
        &json!({"ipRestriction": {"policies": "office"}}),
        &[
            "modules.ipRestriction.policies: wrong-type: a list is needed here, not a text (write a list, with a hyphen before each entry)",
        ],
    );
    let unknown = |name: &str| {
        let content = json!({"modules": {"ipRestriction": {"policies": ["office"], name: true}}});
        crate::decoded(NgrokModuleSet, crate::document(NgrokModuleSet, &content))
            .expect_err("it is refused")
            .problems[0]
            .remedy
            .clone()
    };
    assert_eq!(unknown("policy"), "did you mean policies?");
    assert!(!unknown("enabled").contains("compression"));
    wrong(
        &json!({"ipRestriction": {"allowCidrs": ["10.0.0.0/8"]}}),
        &[
            "modules.ipRestriction.allowCidrs: unknown-field: there is no field allowCidrs in ipRestriction (addresses stand in an IPPolicy object: name it under policies)",
            "modules.ipRestriction.policies: missing-field: policies is missing: names of IPPolicies in the same namespace, or ids of policies at the edge",
        ],
    );
    wrong(
        &json!({"ipRestriction": null}),
        &[
            "modules.ipRestriction: no-value: ipRestriction has no value (indent what belongs to it below it, or remove the line)",
        ],
    );
}

#[test]
fn oauth_providers() {
    for provider in [
        "google",
        "gitlab",
        "amazon",
        "facebook",
        "microsoft",
        "twitch",
        "linkedin",
    ] {
        let oauth = json!({"oauth": {provider: {
            "optionsPassthrough": false,
            "cookiePrefix": "shop.",
            "inactivityTimeout": "1h0m0s",
            "maximumDuration": "0s",
            "authCheckInterval": "5m0s",
            "clientId": "abc",
            "clientSecret": {"name": "app", "key": "secret"},
            "scopes": ["email"],
            "emailAddresses": ["ann@example.com"],
            "emailDomains": ["example.com"],
        }}});
        module(&oauth, &oauth);
        let there_is_none = format!(
            "modules.oauth.{provider}.teams: unknown-field: there is no field teams in {provider} \
             (it belongs at modules.oauth.github.teams)"
        );
        wrong(
            &json!({"oauth": {provider: {"teams": ["acme/ops"]}}}),
            &[&there_is_none],
        );
    }
    module(
        &json!({"oauth": {"github": {"teams": ["acme/ops"], "organizations": ["acme"]}}}),
        &json!({"oauth": {"github": {
            "optionsPassthrough": false,
            "cookiePrefix": "",
            "inactivityTimeout": "0s",
            "maximumDuration": "0s",
            "authCheckInterval": "0s",
            "teams": ["acme/ops"],
            "organizations": ["acme"],
        }}}),
    );
}

#[test]
fn oauth_mistakes() {
    wrong(
        &json!({"oauth": {}}),
        &[
            "modules.oauth: choose-one: one of amazon, facebook, github, gitlab, google, linkedin, microsoft or twitch is needed here (write exactly one)",
        ],
    );
    wrong(
        &json!({"oauth": {"google": {}, "github": {}}}),
        &["modules.oauth: choose-one: google and github exclude one another (keep exactly one)"],
    );
    wrong(
        &json!({"oauth": {"okta": {}}}),
        &[
            "modules.oauth.okta: unknown-field: there is no field okta in oauth (the fields here are amazon, facebook, github, gitlab, google, linkedin, microsoft and twitch)",
        ],
    );
    wrong(
        &json!({"oauth": {"googel": {"emailDomain": ["example.com"]}}}),
        &[
            "modules.oauth.googel: unknown-field: there is no field googel in oauth (did you mean google?)",
            "modules.oauth.googel.emailDomain: unknown-field: there is no field emailDomain in googel (did you mean emailDomains?)",
        ],
    );
    wrong(
        &json!({"oauth": {"google": {
            "inactivityTimeout": "1d",
            "maximumDuration": "2w",
            "authCheckInterval": "1 h",
            "clientId": "",
            "clientSecret": {"name": "app", "namespace": "other"},
            "emailAddresses": ["ann", "@example.com"],
            "emailDomains": ["*.example.com", "ann@example.com", "localhost"],
        }}}),
        &[
            r#"modules.oauth.google.authCheckInterval: bad-duration: " h" is not a unit of time in "1 h" (the units are h, m, s, ms, us and ns)"#,
            "modules.oauth.google.clientId: empty: the text is empty (write a value)",
            "modules.oauth.google.clientSecret.key: missing-field: key is missing: key in its data",
            "modules.oauth.google.clientSecret.namespace: unknown-field: there is no field namespace in clientSecret (a Secret is read from the namespace of the object that names it: remove this line)",
            r#"modules.oauth.google.emailAddresses[0]: bad-value: "ann" is not an e-mail address (write one address such as ann@example.com)"#,
            r#"modules.oauth.google.emailAddresses[1]: bad-value: "@example.com" is not an e-mail address (to let in a whole domain write example.com under emailDomains)"#,
            r#"modules.oauth.google.emailDomains[0]: bad-value: "*.example.com" is not the domain of an e-mail address (write example.com: the domain itself is compared, without wildcards and without @)"#,
            r#"modules.oauth.google.emailDomains[1]: bad-value: "ann@example.com" is not the domain of an e-mail address (a single address belongs under emailAddresses; the domain alone is example.com)"#,
            r#"modules.oauth.google.emailDomains[2]: bad-value: "localhost" is not the domain of an e-mail address (write a domain such as example.com)"#,
            r#"modules.oauth.google.inactivityTimeout: bad-duration: "d" is not a unit of time in "1d" (days do not exist here: write 24h)"#,
            r#"modules.oauth.google.maximumDuration: bad-duration: "w" is not a unit of time in "2w" (weeks do not exist here: write 336h)"#,
        ],
    );
    wrong(
        &json!({"oauth": {"google": {"emailAddresses": [], "emailDomains": []}}}),
        &[
            "modules.oauth.google.emailAddresses: empty: the list is empty (name at least one entry)",
            "modules.oauth.google.emailDomains: empty: the list is empty (name at least one entry)",
        ],
    );
    wrong(
        &json!({"oauth": {"google": {"allowedDomains": ["example.com"], "email_domains": ["example.com"]}}}),
        &[
            "modules.oauth.google.allowedDomains: unknown-field: there is no field allowedDomains in google (did you mean emailDomains?)",
            "modules.oauth.google.email_domains: unknown-field: there is no field email_domains in google (did you mean emailDomains?)",
        ],
    );
    wrong(
        &json!({"oauth": {"github": {"teams": ["ops"], "organizations": []}}}),
        &[
            "modules.oauth.github.organizations: empty: the list is empty (name at least one entry)",
            r#"modules.oauth.github.teams[0]: bad-value: "ops" is not a team (write organization/team-slug)"#,
        ],
    );
}

#[test]
fn oidc() {
    module(
        &json!({"oidc": {
            "issuer": "https://id.example.com",
            "clientId": "abc",
            "clientSecret": {"name": "oidc", "key": "secret"},
            "scopes": ["profile", "email"],
            "maximumDuration": "24h",
        }}),
        &json!({"oidc": {
            "optionsPassthrough": false,
            "cookiePrefix": "",
            "inactivityTimeout": "0s",
            "maximumDuration": "24h0m0s",
            "issuer": "https://id.example.com",
            "clientId": "abc",
            "clientSecret": {"name": "oidc", "key": "secret"},
            "scopes": ["profile", "email"],
        }}),
    );
    wrong(
        &json!({"oidc": {"issuer": "", "clientID": "abc", "authCheckInterval": "5m"}}),
        &[
            "modules.oidc.authCheckInterval: unknown-field: there is no field authCheckInterval in oidc (the fields here are clientId, clientSecret, cookiePrefix, inactivityTimeout, issuer, maximumDuration, optionsPassthrough and scopes)",
            "modules.oidc.clientID: unknown-field: there is no field clientID in oidc (did you mean clientId?)",
            "modules.oidc.clientSecret: missing-field: clientSecret is missing: client secret at the provider",
            "modules.oidc.issuer: empty: the text is empty (write a value)",
        ],
    );
}

#[test]
fn saml() {
    module(
        &json!({"saml": {"idpMetadata": "<EntityDescriptor/>", "allowIdpInitiated": false, "authorizedGroups": ["staff"]}}),
        &json!({"saml": {
            "optionsPassthrough": false,
            "cookiePrefix": "",
            "inactivityTimeout": "0s",
            "maximumDuration": "0s",
            "idpMetadata": "<EntityDescriptor/>",
            "forceAuthn": false,
            "allowIdpInitiated": false,
            "authorizedGroups": ["staff"],
            "nameidFormat": "",
        }}),
    );
    wrong(
        &json!({"saml": {"idpMetadata": " ", "authorizedGroups": []}}),
        &[
            "modules.saml.authorizedGroups: empty: the list is empty (name at least one entry)",
            "modules.saml.idpMetadata: empty: the text is empty (write a value)",
        ],
    );
    wrong(
        &json!({"saml": {"idpMetadataURL": "https://id.example.com", "authorizedGroups": ["", "staff"]}}),
        &[
            "modules.saml.authorizedGroups[0]: empty: the text is empty (write a value)",
            "modules.saml.idpMetadataURL: unknown-field: there is no field idpMetadataURL in saml (nothing is fetched: write the metadata's XML under idpMetadata)",
        ],
    );
}

#[test]
fn tls() {
    let modules = json!({
        "tlsTermination": {"terminateAt": "edge", "minVersion": "1.3"},
        "mutualTLS": {"certificateAuthorities": ["ca_1", "clients"]},
    });
    module(&modules, &modules);
    wrong(
        &json!({"tlsTermination": {}, "mutualTLS": {}}),
        &[
            "modules.mutualTLS.certificateAuthorities: missing-field: certificateAuthorities is missing",
            "modules.tlsTermination: empty: nothing stands in it, so it would do nothing (fill it in or remove it)",
        ],
    );
    wrong(
        &json!({"tlsTermination": {"minVersion": 1.2}, "mutualTLS": {"certificateAuthorities": []}}),
        &[
            "modules.mutualTLS.certificateAuthorities: empty: the list is empty (name at least one entry)",
            "modules.tlsTermination.minVersion: wrong-type: a text is needed here, not a number (put the value in quotes)",
        ],
    );
    wrong(
        &json!({"tlsTermination": {"terminateAt": "Edge", "minVersion": "1.4"}, "mutualTls": {"certificateAuthorities": ["ca_1"]}}),
        &[
            "modules.mutualTls: unknown-field: there is no field mutualTls in modules (did you mean mutualTLS?)",
            r#"modules.tlsTermination.minVersion: not-allowed-value: "1.4" is not 1.0, 1.1, 1.2 or 1.3"#,
            r#"modules.tlsTermination.terminateAt: not-allowed-value: "Edge" is not edge or upstream (did you mean edge?)"#,
        ],
    );
    wrong(
        &json!({"tlsTermination": {"terminateAt": "upstream", "minVersion": "1.2"}}),
        &[
            "modules.tlsTermination.minVersion: contradiction: a lowest TLS version cannot be demanded where TLS ends upstream (remove minVersion, or end TLS at the edge)",
        ],
    );
}

#[test]
fn webhooks() {
    let signed = json!({"webhookVerification": {"provider": "github", "secret": {"name": "hook", "key": "token"}}});
    module(&signed, &signed);
    let unsigned = json!({"webhookVerification": {"provider": "sns"}});
    module(&unsigned, &unsigned);
    wrong(
        &json!({"webhookVerification": {"provider": "github"}}),
        &[
            "modules.webhookVerification.secret: missing-field: signatures cannot be verified without a secret (name a Secret and its key: secret: {name: …, key: …})",
        ],
    );
    wrong(
        &json!({"webhookVerification": {"provider": "github", "secret": {"name": "hook", "key": ""}}}),
        &["modules.webhookVerification.secret.key: empty: the text is empty (write a value)"],
    );
    wrong(
        &json!({"webhookVerification": {"secret": "token"}}),
        &[
            "modules.webhookVerification.provider: missing-field: provider is missing: id of the sender's signature scheme",
            "modules.webhookVerification.secret: wrong-type: an object is needed here, not a text",
        ],
    );
}

#[test]
fn policies() {
    module(
        &json!({"policy": {
            "enabled": true,
            "inbound": [{
                "name": "block-curl",
                "expressions": ["req.Headers['User-Agent'][0].startsWith('curl')"],
                "actions": [{"type": "deny", "config": {"status_code": 403, "other": null}}],
            }],
            "outbound": [{"actions": [{"type": "log"}]}],
        }}),
        &json!({"policy": {
            "enabled": true,
            "inbound": [{
                "name": "block-curl",
                "expressions": ["req.Headers['User-Agent'][0].startsWith('curl')"],
                "actions": [{"type": "deny", "config": {"status_code": 403, "other": null}}],
            }],
            "outbound": [{"name": "", "actions": [{"type": "log"}]}],
        }}),
    );
    wrong(
        &json!({"policy": {}}),
        &[
            "modules.policy: empty: nothing stands in it, so it would do nothing (fill it in or remove it)",
        ],
    );
    wrong(
        &json!({"policy": {"on_http_request": []}}),
        &[
            "modules.policy.on_http_request: unknown-field: there is no field on_http_request in policy (the fields here are enabled, inbound and outbound)",
        ],
    );
    wrong(
        &json!({"policy": {"inbound": [{"actions": []}, {"action": [{"type": ""}]}, null]}}),
        &[
            "modules.policy.inbound[0].actions: empty: the list is empty (name at least one entry)",
            "modules.policy.inbound[1].action: unknown-field: there is no field action in inbound (did you mean actions?)",
            "modules.policy.inbound[1].action[0].type: empty: the text is empty (write a value)",
            "modules.policy.inbound[2]: no-value: the entry has no value (write a value or remove the entry)",
        ],
    );
}

#[test]
fn misplaced_modules() {
    refused(
        NgrokModuleSet,
        &json!({"spec": {"modules": {"compression": {"enabled": true}}}}),
        &[
            "modules: missing-field: modules is missing: the modules",
            "spec: unknown-field: there is no field spec here (this kind has no spec: write modules at the top level)",
        ],
    );
    refused(
        NgrokModuleSet,
        &json!({"module": {"compression": {"enabled": true}}}),
        &["module: unknown-field: there is no field module here (did you mean modules?)"],
    );
    refused(
        NgrokModuleSet,
        &json!({"oauth": {"google": {}}}),
        &[
            "modules: missing-field: modules is missing: the modules",
            "oauth: unknown-field: there is no field oauth here (it belongs at modules.oauth)",
        ],
    );
    refused(
        NgrokModuleSet,
        &json!({"modules": {}}),
        &["modules: empty: nothing stands in it, so it would do nothing (fill it in or remove it)"],
    );
    refused(
        NgrokModuleSet,
        &json!({"modules": null}),
        &[
            "modules: no-value: modules has no value (indent what belongs to it below it, or remove the line)",
        ],
    );
    refused(
        NgrokModuleSet,
        &json!({"modules": [{"compression": {"enabled": true}}]}),
        &["modules: wrong-type: an object is needed here, not a list"],
    );
    wrong(
        &json!({"circuit_breaker": {"tripped_duration": "10s"}}),
        &[
            "modules.circuit_breaker: unknown-field: there is no field circuit_breaker in modules (did you mean circuitBreaker?)",
            "modules.circuit_breaker.tripped_duration: unknown-field: there is no field tripped_duration in circuit_breaker (did you mean trippedDuration?)",
        ],
    );
    wrong(
        &json!({"ipRestrictions": {"policies": ["office"]}}),
        &[
            "modules.ipRestrictions: unknown-field: there is no field ipRestrictions in modules (did you mean ipRestriction?)",
        ],
    );
    wrong(
        &json!({"headers": {"oauth": {"google": {}}, "request": {"add": {"a": "b"}}}}),
        &[
            "modules.headers.oauth: unknown-field: there is no field oauth in headers (it belongs at modules.oauth)",
        ],
    );
    wrong(
        &json!({"rateLimit": {"requests": 10}}),
        &[
            "modules.rateLimit: unknown-field: there is no field rateLimit in modules (the fields here are circuitBreaker, compression, headers, ipRestriction, mutualTLS, oauth, oidc, policy, saml, tlsTermination and webhookVerification)",
        ],
    );
    wrong(
        &json!({"oauth": {"google": {"headers": {}}}, "websocketTCPConverter": {"enabled": true}}),
        &[
            "modules.oauth.google.headers: unknown-field: there is no field headers in google (it belongs at modules.headers)",
            "modules.websocketTCPConverter: unknown-field: there is no field websocketTCPConverter in modules (the fields here are circuitBreaker, compression, headers, ipRestriction, mutualTLS, oauth, oidc, policy, saml, tlsTermination and webhookVerification)",
        ],
    );
}
