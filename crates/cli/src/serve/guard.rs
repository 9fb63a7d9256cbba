//! Access to the server: only pages that it sent itself, and programs that have its address.
//!
//! The address has a token that other users and other pages cannot guess. Requests for another host are refused, so no
//! name of another site leads here (DNS rebinding). Requests from pages of other origins are refused, whatever they
//! know.

use super::site::{BODY_MAX, Site};
use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;

/// The headers of all answers. The page is kept nowhere, tells its address to nobody, and is in no frame.
const HEADERS: [(HeaderName, &str); 5] = [
    (header::CACHE_CONTROL, "no-store"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::CONTENT_SECURITY_POLICY, "frame-ancestors 'none'"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Refuses what must not reach the site, before the body is read.
pub async fn guard(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    let mut response = match refused(&site, &request) {
        Some(refused) => refused.into_response(),
        None => next.run(request).await,
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Why a request is refused.
fn refused(site: &Site, request: &Request<Body>) -> Option<(StatusCode, &'static str)> {
    let headers = request.headers();
    let own = |text: &str| site.hosts.iter().any(|host| host == text);
    if !only(headers, &header::HOST).is_some_and(own) {
        return Some((StatusCode::MISDIRECTED_REQUEST, "this server has another name\n"));
    }
    let is_foreign = |origin: &str| !origin.strip_prefix("http://").is_some_and(own);
    let has_origin = headers.contains_key(header::ORIGIN);
    if has_origin && only(headers, &header::ORIGIN).is_none_or(is_foreign) {
        return Some((StatusCode::FORBIDDEN, "this is not for pages of other origins\n"));
    }
    let sites = headers.get_all("sec-fetch-site");
    if sites.iter().any(|site| site != "same-origin" && site != "none") {
        return Some((StatusCode::FORBIDDEN, "this is not for pages of other origins\n"));
    }
    let token = request.uri().path().trim_start_matches('/').split('/').next().unwrap_or_default();
    if !is_same(token.as_bytes(), site.token.as_bytes()) {
        return Some((StatusCode::NOT_FOUND, "there is nothing here without the whole address\n"));
    }
    let is_json = only(headers, &header::CONTENT_TYPE) == Some("application/json");
    if request.method() == Method::POST && !is_json {
        return Some((StatusCode::UNSUPPORTED_MEDIA_TYPE, "the content must be application/json\n"));
    }
    // The length that is announced; one that is not announced ends at the limit.
    if request.body().size_hint().lower() > BODY_MAX as u64 {
        return Some((StatusCode::PAYLOAD_TOO_LARGE, "the content is too long\n"));
    }
    None
}

/// The value of a header that occurs once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// Whether two texts are equal, in a time that tells only their lengths.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |found, (a, b)| found | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_compared_as_a_whole() {
        assert!(is_same(b"abc", b"abc") && is_same(b"", b""));
        for other in [&b"abd"[..], b"bbc", b"ab", b"abcd", b""] {
            assert!(!is_same(b"abc", other), "{other:?}");
        }
    }
}
