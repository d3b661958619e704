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
    if let Some((message, remedy)) = metadata_fault(idp_metadata) {
        judge.report(
            Code::ModuleInvalid,
            &at.member("idpMetadata"),
            message,
            remedy,
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

/// Why a text cannot be an identity provider's metadata, and what to do.
fn metadata_fault(text: &str) -> Option<(&'static str, &'static str)> {
    let begin = text.trim_start();
    if begin.starts_with("http") {
        Some((
            "idpMetadata is a URL, and the metadata itself is needed",
            "put the XML text there",
        ))
    } else if !begin.starts_with('<') || !text.contains("EntityDescriptor") {
        Some((
            "idpMetadata is not an EntityDescriptor in XML",
            "copy the metadata document of the identity provider",
        ))
    } else if text.len() > METADATA_BYTES_MAX {
        Some((
            "idpMetadata is longer than 256 KiB",
            "keep the EntityDescriptor of the one provider",
        ))
    } else {
        None
    }
}
