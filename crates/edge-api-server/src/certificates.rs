//! `/tls_certificates`

use axum::extract::Path;
use edge_api::{
    certificate::{CertificateCreate, CertificateExtras, TlsCertificate, read_update},
    error::ApiError,
};
use edge_state::{
    command::Command,
    state::{Certificate, Meta},
};
use edge_store::Published;
use model::id::CertificateId;

use crate::{
    answer::{Answer, Failure, Outcome},
    call::Call,
    edges::texts,
    ids, page, views, x509,
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

fn show(call: &Call, published: &Published, id: &CertificateId) -> Result<TlsCertificate, Failure> {
    match published.state.certificates.get(id) {
        Some(certificate) => Ok(view(&call.base, id, certificate)),
        None => Err(ApiError::not_found().into()),
    }
}

pub(crate) async fn list(call: Call) -> Outcome {
    let published = call.state();
    let items = published.state.certificates.iter();
    page::answer(&call, CertificateId::parse, items, |id, certificate| {
        Some(view(&call.base, id, certificate))
    })
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
    let _turn = call.turn().await;
    let applied = call.apply(command).await?;
    Ok(Answer::created(&show(&call, &applied.published, &id)?)?.about(id))
}

pub(crate) async fn get(Path(id): Path<String>, call: Call) -> Outcome {
    call.no_parameters()?;
    let id = page::id(&id, CertificateId::parse)?;
    Answer::ok(&show(&call, &call.state(), &id)?)
}

pub(crate) async fn update(Path(id): Path<String>, call: Call) -> Outcome {
    let id = page::id(&id, CertificateId::parse)?;
    let texts = texts(read_update(call.members()?, id.as_str())?);
    let _turn = call.turn().await;
    let applied = call
        .apply(Command::UpdateCertificate {
            id: id.clone(),
            texts,
        })
        .await?;
    Ok(Answer::ok(&show(&call, &applied.published, &id)?)?.about(id))
}

pub(crate) async fn delete(Path(id): Path<String>, call: Call) -> Outcome {
    call.no_parameters()?;
    let id = page::id(&id, CertificateId::parse)?;
    let _turn = call.turn().await;
    call.apply(Command::DeleteCertificate { id: id.clone() })
        .await?;
    Ok(Answer::done().about(id))
}
