//! A page as a tree of elements, from the tokens of a parser that knows nothing of what wrote it. Every element that is not void
//! must be closed, by its own end tag.

use html5gum::{Token, Tokenizer};

/// Elements without an end tag (HTML standard, 13.1.2).
const VOID: [&str; 13] =
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"];

/// An element, or the page itself, which has no name.
#[derive(Debug, Default)]
pub(super) struct Element {
    name: String,
    attributes: Vec<(String, String)>,
    children: Vec<Node>,
}

#[derive(Debug)]
enum Node {
    Element(Element),
    Text(String),
}

impl Element {
    /// The value of an attribute.
    pub(super) fn attr(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Its text up to the first element within it.
    pub(super) fn text(&self) -> &str {
        match self.children.first() {
            Some(Node::Text(text)) => text,
            _ => "",
        }
    }

    /// The elements within it that `is_it`, in the order of the page.
    pub(super) fn within(&self, is_it: &dyn Fn(&Element) -> bool) -> Vec<&Element> {
        let mut found = Vec::new();
        self.collect(is_it, &mut found);
        found
    }

    /// The elements of that name within it.
    pub(super) fn named(&self, name: &str) -> Vec<&Element> {
        self.within(&|element| element.name == name)
    }

    fn collect<'a>(&'a self, is_it: &dyn Fn(&Element) -> bool, found: &mut Vec<&'a Element>) {
        for child in &self.children {
            let Node::Element(element) = child else { continue };
            if is_it(element) {
                found.push(element);
            }
            element.collect(is_it, found);
        }
    }
}

/// The tree of a page.
///
/// # Errors
///
/// An element that is not closed, or an end tag of none.
pub(super) fn parse(html: &str) -> Result<Element, String> {
    let mut open = vec![Element::default()];
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    for Ok(token) in Tokenizer::new(html) {
        match token {
            Token::StartTag(tag) => {
                let attributes =
                    tag.attributes.iter().map(|(name, value)| (text(name), text(&value.value))).collect();
                let element = Element { name: text(&tag.name), attributes, children: Vec::new() };
                if tag.self_closing || VOID.contains(&element.name.as_str()) {
                    innermost(&mut open).children.push(Node::Element(element));
                } else {
                    open.push(element);
                }
            }
            Token::EndTag(tag) => {
                let name = text(&tag.name);
                let element = open.pop().filter(|element| element.name == name && !open.is_empty());
                let element = element.ok_or_else(|| format!("</{name}> ends what is not open"))?;
                innermost(&mut open).children.push(Node::Element(element));
            }
            Token::String(string) => innermost(&mut open).children.push(Node::Text(text(&string.value))),
            Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
    }
    match (open.pop(), open.is_empty()) {
        (Some(page), true) => Ok(page),
        (element, _) => Err(format!("<{}> is not closed", element.unwrap_or_default().name)),
    }
}

fn innermost(open: &mut [Element]) -> &mut Element {
    open.last_mut().expect("the page is open")
}

#[test]
fn a_tree_has_what_the_page_has() {
    let page = parse("<!DOCTYPE html><p a='1'>x<br><b>y</b></p><svg><path d=z /></svg>").expect("a page");
    assert_eq!(page.named("p")[0].attr("a"), Some("1"));
    assert_eq!(page.named("p")[0].text(), "x");
    assert_eq!(page.named("b").len() + page.named("path").len() + page.named("br").len(), 3);
    for wrong in ["<p><b></p></b>", "<p>", "</p>"] {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
}
