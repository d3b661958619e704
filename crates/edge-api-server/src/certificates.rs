//! `/tls_certificates`

use edge_api::certificate::{CertificateCreate, CertificateExtras, TlsCertificate, read_update};
use edge_state::{
    command::Command,
    state::{Certificate, Meta},
};
use model::id::CertificateId;

use crate::{answer::Outcome, call::Call, collection::Collection, edges::texts, ids, views, x509};

pub(crate) static CERTIFICATES: Collection<CertificateId, TlsCertificate> = Collection {
    parse: CertificateId::parse,
    ids: |state| Box::new(state.certificates.keys()),
    find: |base, state, id| Some(view(base, id, state.certificates.get(id)?)),
    update: |id, members| {
        let texts = texts(read_update(members, id.as_str())?);
        Ok(Command::UpdateCertificate { id, texts })
    },
    delete: |id| Command::DeleteCertificate { id },
};

/// A certificate without its key: the key goes in and never comes out.
fn view(base: &str, id: &CertificateId, certificate: &Certificate) -> TlsCertificate {
    let Certificate {
        meta,
        controller,
        chain_pem,
        key_pem: _,
    } = certificate;
    let Meta {
        description,
        metadata,
        created_at,
    } = meta;
    TlsCertificate {
        id: id.to_string(),
        uri: format!("{base}/tls_certificates/{id}"),
        created_at: views::rfc3339(*created_at),
        description: description.clone(),
        metadata: metadata.clone(),
        certificate_pem: chain_pem.clone(),
        portcullis: CertificateExtras {
            controller: controller.clone(),
        },
        ..x509::facts(chain_pem)
    }
}

pub(crate) async fn create(call: Call) -> Outcome {
    let CertificateCreate {
        chain_pem,
        key_pem,
        texts: written,
    } = CertificateCreate::read(call.members()?)?;
    x509::check(&chain_pem, &key_pem)?;
    let id = CertificateId::from_bits(ids::bits()?);
    let command = Command::PutCertificate {
        id: id.clone(),
        controller: None,
        // With a newline at its end, as this API shows every PEM.
        chain_pem: format!("{}\n", chain_pem.trim_end()),
        key_pem,
        texts: texts(written),
    };
    CERTIFICATES.make(&call, id, command).await
}
