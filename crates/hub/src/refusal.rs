//! What it means for people that the server did not take a write.

/// What a refused write means for people; nothing where somebody was faster, which is no failure.
pub(crate) fn refusal(write: &str, error: &kube::Error) -> Option<String> {
    let kube::Error::Api(status) = error else { return Some(format!("could not {write}: {error}")) };
    let is_gone = status.is_not_found() && !write.starts_with("Create");
    let is_overtaken = status.is_conflict() && !status.is_already_exists();
    (!is_gone && !is_overtaken).then(|| format!("could not {write}: {}", status.message))
}
