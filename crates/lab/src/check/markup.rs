//! HTML, as far as a report of the lab has it: tags with quoted attributes, and text between them.

/// A tag with the text that follows it, up to the next tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tag {
    /// `table`, or `/table` for its end.
    pub(super) name: String,
    attributes: Vec<(String, String)>,
    /// With what stands for `<`, `&` and quotes replaced.
    pub(super) text: String,
}

impl Tag {
    /// The value of an attribute.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The value of an attribute as a number.
    pub(super) fn number(&self, name: &str) -> Option<f64> {
        self.get(name)?.parse().ok()
    }
}

/// All tags of a page in order.
pub(super) fn tags(html: &str) -> Vec<Tag> {
    let mut tags = Vec::new();
    let mut rest = html;
    while let Some(start) = rest.find('<') {
        let inside = &rest[start + 1..];
        let Some(end) = end_of(inside) else { break };
        let after = &inside[end + 1..];
        let text = &after[..after.find('<').unwrap_or(after.len())];
        tags.push(tag(&inside[..end], text));
        rest = after;
    }
    tags
}

/// The elements from the tag that `is_start` finds, each up to its end; they are not nested.
pub(super) fn elements(tags: &[Tag], is_start: impl Fn(&Tag) -> bool) -> Vec<&[Tag]> {
    let mut found = Vec::new();
    for (index, start) in tags.iter().enumerate().filter(|(_, tag)| is_start(tag)) {
        let end = format!("/{}", start.name);
        let length = tags[index..].iter().position(|tag| tag.name == end).unwrap_or(tags.len() - index);
        found.push(&tags[index..index + length]);
    }
    found
}

/// Where the tag ends; a `>` in quotes is no end.
fn end_of(inside: &str) -> Option<usize> {
    let mut quoted = false;
    inside.bytes().position(|byte| {
        quoted ^= byte == b'"';
        byte == b'>' && !quoted
    })
}

fn tag(inside: &str, text: &str) -> Tag {
    let (name, mut rest) = inside.split_once(char::is_whitespace).unwrap_or((inside, ""));
    let mut attributes = Vec::new();
    while let Some((attribute, value)) = rest.split_once("=\"") {
        let Some((value, after)) = value.split_once('"') else { break };
        attributes.push((attribute.trim().to_owned(), unescaped(value)));
        rest = after;
    }
    Tag { name: name.trim_end_matches('/').to_owned(), attributes, text: unescaped(text) }
}

fn unescaped(text: &str) -> String {
    let replaced =
        text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&#39;", "'");
    replaced.replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_attributes_and_text_are_read() {
        let tags = tags(
            "<!DOCTYPE html><p title=\"a > &quot;b&quot;\" data-x=\"1.5\">1 &lt; 2 &amp;lt;<br/></p>end",
        );
        let names: Vec<&str> = tags.iter().map(|tag| tag.name.as_str()).collect();
        assert_eq!(names, ["!DOCTYPE", "p", "br", "/p"]);
        assert_eq!((tags[1].get("title"), tags[1].number("data-x")), (Some("a > \"b\""), Some(1.5)));
        assert_eq!((tags[1].text.as_str(), tags[3].text.as_str()), ("1 < 2 &lt;", "end"));
        assert_eq!(elements(&tags, |tag| tag.name == "p")[0].len(), 2);
    }
}
