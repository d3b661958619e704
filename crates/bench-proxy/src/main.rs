//! The request path on plain TCP, for `cargo xtask bench` alone: `bench-proxy DATA_DIR ADDRESS`
//! serves what a product's process left in its data directory, until it is killed.
//!
//! The product's plain port only redirects. To weigh requests without TLS, this program starts the
//! same data plane, with the options of `portcullis up --workers 1`, but for what the plain port
//! does. A crate of its own, so that it is built with the product's own features of everything.

use std::{error::Error, num::NonZeroUsize};

use edge_proxy::{Dial, Options, Proxy};
use edge_store::Store;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [data_dir, address] = arguments.as_slice() else {
        return Err("usage: bench-proxy DATA_DIR ADDRESS".into());
    };
    let mut options = Options::new(data_dir.into());
    options.http = address.parse()?;
    options.workers = NonZeroUsize::new(1);
    options.dial = Dial {
        allow: vec!["127.0.0.0/8".parse()?],
        own: Vec::new(),
    };
    let store = Store::open(&edge_store::Options::new(data_dir.into()))?;
    let _serves = Proxy::start_in_clear(&store, options)?;
    loop {
        std::thread::park();
    }
}
