//! `saml`: the identity provider's metadata as text.

use model::module::Saml;
use resources::module_set as written;

use crate::{
    codes::Code,
    modules::login,
    preflight::{Judge, Written},
};

/// Longest metadata document, in bytes.
const METADATA_BYTES_MAX: usize = 256 * 1024;

const PERSISTENT: &str = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent";
const NAMEID_FORMATS: [&str; 4] = [
    PERSISTENT,
    "urn:oasis:names:tc:SAML:2.0:nameid-format:transient",
    "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress",
    "urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified",
];

pub(crate) fn judge(
    judge: &mut Judge<'_, '_>,
    written: &Written<'_, &written::Saml>,
) -> Option<Saml> {
    let written::Saml {
        options_passthrough,
        cookie_prefix,
        inactivity_timeout,
        maximum_duration,
        idp_metadata,
        force_authn,
        allow_idp_initiated,
        authorized_groups,
        nameid_format,
    } = written.content;
    let at = &written.field;
    let settings = login::Settings {
        options_passthrough: *options_passthrough,
        cookie_prefix,
        inactivity_timeout: *inactivity_timeout,
        maximum_duration: *maximum_duration,
    };
    let session = login::judge(judge, at, &settings);
    let metadata = at.member("idpMetadata");
    if idp_metadata.trim_start().starts_with("http") {
        let message = "idpMetadata is a URL, and the metadata itself is needed";
        judge.report(
            Code::ModuleInvalid,
            &metadata,
            message,
            "put the XML text there",
        );
    } else if !idp_metadata.trim_start().starts_with('<')
        || !idp_metadata.contains("EntityDescriptor")
    {
        let message = "idpMetadata is not an EntityDescriptor in XML";
        judge.report(
            Code::ModuleInvalid,
            &metadata,
            message,
            "copy the metadata document of the identity provider",
        );
    }
    if idp_metadata.len() > METADATA_BYTES_MAX {
        let message = format!("idpMetadata is longer than {METADATA_BYTES_MAX} bytes");
        judge.report(
            Code::ModuleInvalid,
            &metadata,
            message,
            "keep the EntityDescriptor of the one provider",
        );
    }
    judge.bounded_list(&at.member("authorizedGroups"), authorized_groups);
    let format = if nameid_format.is_empty() {
        PERSISTENT
    } else {
        nameid_format
    };
    if !NAMEID_FORMATS.contains(&format) {
        let message = format!("{format:?} is not a NameID format that the edge supports");
        judge.report(
            Code::ModuleInvalid,
            &at.member("nameidFormat"),
            message,
            format!("use one of {}", NAMEID_FORMATS.join(", ")),
        );
    }
    if authorized_groups.is_empty() {
        let message = "everybody whom the identity provider vouches for gets in";
        judge.report(
            Code::EveryoneAdmitted,
            at,
            message,
            "add authorizedGroups if that is not meant",
        );
    }
    Some(Saml {
        enabled: true,
        session,
        idp_metadata: idp_metadata.clone(),
        force_authn: *force_authn,
        allow_idp_initiated: allow_idp_initiated.unwrap_or(true),
        authorized_groups: authorized_groups.iter().cloned().collect(),
        nameid_format: format.to_owned(),
    })
}
