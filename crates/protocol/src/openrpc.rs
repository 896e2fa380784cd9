//! The OpenRPC document.
