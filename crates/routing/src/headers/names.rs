//! The lists behind [`super::fate`], and how a name is looked up in them without a copy.
//!
//! Names are lower case, with `-` for whatever a backend turns into an underscore, grouped by who
//! sets or believes them. A name belongs here when a proxy in front of an application is known to
//! set it. Credentials that clients themselves send do not (`authorization`, `x-auth-token`,
//! `x-access-token`, `x-user-id`, `x-api-key`).

/// A list of whole names, by length.
#[derive(Debug)]
pub struct Names<const N: usize> {
    names: [&'static str; N],
    /// Where the names of each length begin; longer ones are in no list.
    starts: [u8; LENGTH_MAX + 2],
}

const LENGTH_MAX: usize = 40;

impl<const N: usize> Names<N> {
    const fn new(names: [&'static str; N]) -> Self {
        let mut names = names;
        let mut sorted = 1;
        while sorted < N {
            let mut at = sorted;
            while at > 0 && names[at - 1].len() > names[at].len() {
                names.swap(at - 1, at);
                at -= 1;
            }
            sorted += 1;
        }
        assert!(
            N < 256 && names[N - 1].len() <= LENGTH_MAX,
            "the list outgrew its index"
        );
        let mut starts = [0; LENGTH_MAX + 2];
        let (mut at, mut length) = (0, 0);
        while length < LENGTH_MAX + 2 {
            while at < N && names[at].len() < length {
                at += 1;
            }
            starts[length] = at as u8;
            length += 1;
        }
        Self { names, starts }
    }

    /// Whether a name, in any spelling, is in the list.
    #[must_use]
    pub fn contains(&self, name: &[u8]) -> bool {
        within(&self.names, &self.starts, name.len())
            .iter()
            .any(|entry| is_spelling(name, entry))
    }

    /// Every name.
    #[must_use]
    pub const fn all(&self) -> &[&'static str] {
        &self.names
    }
}

/// A list of beginnings of names, by first letter.
#[derive(Debug)]
pub struct Prefixes<const N: usize> {
    prefixes: [&'static str; N],
    /// Where the prefixes of each first letter begin.
    starts: [u8; 27],
}

impl<const N: usize> Prefixes<N> {
    const fn new(prefixes: [&'static str; N]) -> Self {
        let mut prefixes = prefixes;
        let mut sorted = 1;
        while sorted < N {
            let mut at = sorted;
            while at > 0 && prefixes[at - 1].as_bytes()[0] > prefixes[at].as_bytes()[0] {
                prefixes.swap(at - 1, at);
                at -= 1;
            }
            sorted += 1;
        }
        let mut starts = [0; 27];
        let (mut at, mut letter) = (0, 0);
        while letter < 27 {
            while at < N && prefixes[at].as_bytes()[0] < b'a' + letter as u8 {
                at += 1;
            }
            starts[letter] = at as u8;
            letter += 1;
        }
        assert!(N < 256 && at == N, "prefixes begin with a small letter");
        Self { prefixes, starts }
    }

    /// Whether a name, in any spelling, begins with one of the list.
    #[must_use]
    pub fn begin(&self, name: &[u8]) -> bool {
        let Some(first) = name
            .first()
            .map(u8::to_ascii_lowercase)
            .filter(u8::is_ascii_lowercase)
        else {
            return false;
        };
        within(&self.prefixes, &self.starts, usize::from(first - b'a'))
            .iter()
            .any(|prefix| {
                name.get(..prefix.len())
                    .is_some_and(|head| is_spelling(head, prefix))
            })
    }

    /// Every prefix.
    #[must_use]
    pub const fn all(&self) -> &[&'static str] {
        &self.prefixes
    }
}

/// The entries from one start to the next.
fn within<'n>(entries: &'n [&'static str], starts: &[u8], group: usize) -> &'n [&'static str] {
    match starts.get(group..).unwrap_or(&[]) {
        [start, end, ..] => entries
            .get(usize::from(*start)..usize::from(*end))
            .unwrap_or(&[]),
        [] | [_] => &[],
    }
}

/// Whether a backend may take `name` for `entry`: letters in any case, and any other character
/// for a hyphen.
pub(crate) fn is_spelling(name: &[u8], entry: &str) -> bool {
    name.len() == entry.len()
        && name.iter().zip(entry.bytes()).all(|(byte, wanted)| {
            if byte.is_ascii_alphanumeric() {
                byte.to_ascii_lowercase() == wanted
            } else {
                wanted == b'-'
            }
        })
}

/// Headers of one hop (RFC 9110 section 7.6.1, and what its predecessors listed). The proxy
/// writes its own where it needs them. Proxy credentials are among the forged prefixes.
pub const HOP_BY_HOP: Names<9> = Names::new([
    "connection",
    "http2-settings",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "proxy-authentication-info",
]);

/// Names that say what only the edge may say.
pub const FORGED: Names<69> = Names::new([
    // Where the request came from.
    "forwarded", // RFC 7239
    "client-ip",
    "x-client-ip",
    "x-clientip",
    "x-real-ip",
    "x-real-port",
    "x-source-ip",
    "x-originating-ip",
    "x-cluster-client-ip",
    "x-http-client-ip",
    "http-client-ip",
    "true-client-ip", // Akamai, Cloudflare
    "x-true-client-ip",
    "akamai-client-ip",
    "incap-client-ip",           // Imperva
    "do-connecting-ip",          // DigitalOcean
    "x-nf-client-connection-ip", // Netlify
    "x-sucuri-clientip",
    "cdn-src-ip",
    "ali-cdn-real-ip",
    "x-proxyuser-ip",
    // Over which scheme, and for which host.
    "front-end-https", // IIS
    "x-scheme",        // nginx ingress controller
    "x-url-scheme",
    "x-host",
    "x-host-override",
    "x-http-host-override",
    // Which URL is really meant.
    "x-url",
    "x-override-url",
    "x-http-destinationurl",
    "base-url",
    "request-uri",
    "x-sendfile-type", // Rack, with x-accel-mapping
    // Who the user is.
    "x-userinfo", // Kong, APISIX
    "x-user",
    "x-username",
    "x-user-name",
    "x-user-email",
    "x-email",
    "x-group",
    "x-groups",
    "x-role",
    "x-roles",
    "x-user-group",
    "x-user-groups",
    "x-user-role",
    "x-user-roles",
    "x-principal",
    "x-subject",
    "x-token-subject",
    "x-authenticated",
    "auth-user",
    "x-credential-identifier", // Kong
    "x-anonymous-consumer",
    "x-jwt-assertion",
    "teleport-jwt-assertion",
    "x-endpoint-api-userinfo",   // Google Cloud Endpoints
    "x-apigateway-api-userinfo", // Google API Gateway
    "ct-remote-user",            // ClearTrust
    // Which certificate the client showed.
    "x-client-verify",
    "x-client-dn",
    "x-client-s-dn",
    "x-client-i-dn",
    "x-client-subject",
    "x-client-subject-dn",
    "x-client-issuer-dn",
    "x-client-serial",
    "x-client-fingerprint",
    // The edge's own.
    "x-request-id",
]);

/// Families of such names.
pub const FORGED_PREFIXES: Prefixes<59> = Prefixes::new([
    // Where the request came from, and which URL is meant.
    "forwarded-",    // forwarded-for, -host, -proto
    "x-forward",     // x-forwarded-for, -host, -proto, -port, -prefix, -user, -client-cert, …
    "x-original-",   // x-original-url, -uri, -method, -host, -forwarded-for
    "x-rewrite-",    // x-rewrite-url
    "x-accel-",      // nginx
    "x-arr-",        // IIS
    "x-envoy-",      // Envoy: x-envoy-original-path, -external-address
    "x-middleware-", // Next.js
    "x-proxy-",      // x-proxy-user, -url
    "x-remote-",     // x-remote-addr, -ip; -user, -group, -extra-… (Kubernetes)
    "x-appengine-",  // Google App Engine
    "x-azure-",      // Azure Front Door
    "x-vercel-",     // Vercel
    "cf-",           // Cloudflare: cf-connecting-ip, cf-access-…
    "fastly-",       // Fastly
    "fly-",          // Fly
    "proxy",         // httpoxy's `Proxy`, proxy-authorization, proxy-client-ip
    "wl-proxy-",     // WebLogic
    // Who the user is.
    "ngrok-", // ngrok-auth-…, ngrok-mtls-…
    "x-ngrok-",
    "x-portcullis-",
    "portcullis-",
    "remote-",         // Authelia: remote-user, -groups; remote-addr
    "x-auth-request-", // oauth2-proxy
    "x-auth-user",
    "x-auth-email",
    "x-auth-group",
    "x-auth-name",
    "x-auth-role",
    "x-auth-subject",
    "x-authenticated-", // Kong
    "x-authentik-",
    "x-consumer-", // Kong
    "x-goog-authenticated-user-",
    "x-goog-iap-",
    "x-amzn-oidc-",
    "x-ms-client-principal", // Azure App Service
    "x-ms-token-",
    "x-jwt-claim-", // Istio
    "x-pomerium-",
    "x-vouch-",
    "x-webauth-", // Grafana
    "x-replit-user-",
    "tailscale-",
    "oidc-",       // mod_auth_openidc
    "mellon-",     // mod_auth_mellon
    "shib-",       // Shibboleth
    "iv-",         // WebSEAL
    "sm-",         // SiteMinder
    "oam-remote-", // Oracle Access Manager
    "osso-",
    // Which certificate the client showed.
    "client-cert", // RFC 9440
    "ssl-",        // ssl-client-verify, -subject-dn, -cert
    "tls-client-",
    "x-ssl-",
    "x-tls-",
    "x-mtls-",
    "x-client-cert",
    "x-amzn-mtls-",
]);

/// Asks for another method than the request line says; believed by many frameworks.
pub const METHOD_OVERRIDES: Names<4> = Names::new([
    "x-http-method",
    "x-http-method-override",
    "x-method",
    "x-method-override",
]);

/// Headers that every message may have, of which look-alikes are dropped: a backend that takes
/// `content_length` for `content-length` would see another message than the edge did.
pub const EXACT_ONLY: Names<8> = Names::new([
    "content-encoding",
    "content-length",
    "content-type",
    "content-range",
    "if-match",
    "sec-websocket-key",
    "sec-websocket-protocol",
    "user-agent",
]);

/// Headers on which a decision may have rested, or by which the message is read: `Connection`
/// cannot have them dropped between the decision and the backend.
pub const NEVER_NOMINATED: Names<16> = Names::new([
    "authorization",
    "cache-control",
    "content-encoding",
    "content-length",
    "content-range",
    "content-type",
    "cookie",
    "date",
    "expect",
    "host",
    "origin",
    "range",
    "referer",
    "set-cookie",
    "user-agent",
    "www-authenticate",
]);

/// Fields that decide how a message is read or whether it is believed never come after its body
/// (RFC 9110 section 6.5.1).
pub const NO_TRAILER: Names<21> = Names::new([
    "age",
    "authorization",
    "cache-control",
    "cookie",
    "date",
    "expect",
    "expires",
    "host",
    "location",
    "max-forwards",
    "origin",
    "pragma",
    "range",
    "referer",
    "retry-after",
    "set-cookie",
    "strict-transport-security",
    "user-agent",
    "vary",
    "warning",
    "www-authenticate",
]);

/// Families of such fields.
pub const NO_TRAILER_PREFIXES: Prefixes<5> =
    Prefixes::new(["accept", "access-control-", "content-", "if-", "sec-"]);

/// All whole names that do not simply go on, so that one look-up settles almost every header.
pub const SPECIAL: Names<90> = Names::new(joined([
    &HOP_BY_HOP.names,
    &FORGED.names,
    &METHOD_OVERRIDES.names,
    &EXACT_ONLY.names,
]));

const fn joined<const N: usize>(lists: [&[&'static str]; 4]) -> [&'static str; N] {
    let mut all = [""; N];
    let (mut list, mut at) = (0, 0);
    while list < lists.len() {
        let mut next = 0;
        while next < lists[list].len() {
            all[at] = lists[list][next];
            at += 1;
            next += 1;
        }
        list += 1;
    }
    assert!(at == N, "every name is in");
    all
}
