//! Makes one document of the blocks of a stream.
//!
//! libchdb prints every block of a stream as a document of its own. In formats without head or foot the blocks simply
//! follow one another; in RowBinaryWithNamesAndTypes each block repeats the head, which is taken off again. Any other
//! format cannot be streamed.

use super::error::QueryError;

const HEADLESS: [&str; 12] = [
    "RowBinary",
    "Native",
    "TabSeparated",
    "TSV",
    "TabSeparatedRaw",
    "TSVRaw",
    "CSV",
    "JSONEachRow",
    "JSONLines",
    "NDJSON",
    "JSONCompactEachRow",
    "Null",
];
const WITH_TYPES: &str = "RowBinaryWithNamesAndTypes";

/// Whether blocks of this format can be joined.
pub(super) fn can_stream(format: &str) -> bool {
    format == WITH_TYPES || HEADLESS.contains(&format)
}

/// Joins the blocks of one stream.
pub(super) struct BlockJoiner {
    repeats_head: bool,
    head: Option<Vec<u8>>,
}

impl BlockJoiner {
    pub(super) fn new(format: &str) -> Self {
        Self { repeats_head: format == WITH_TYPES, head: None }
    }

    /// The part of the block that continues the document.
    pub(super) fn join(&mut self, mut block: Vec<u8>) -> Result<Vec<u8>, QueryError> {
        if !self.repeats_head || block.is_empty() {
            return Ok(block);
        }
        let broken = || QueryError::unavailable("a block of the stream has an unexpected head");
        match &self.head {
            None => {
                let length = head_length(&block).ok_or_else(broken)?;
                self.head = Some(block.get(..length).ok_or_else(broken)?.to_vec());
                Ok(block)
            }
            Some(head) => {
                if !block.starts_with(head) {
                    return Err(broken());
                }
                Ok(block.split_off(head.len()))
            }
        }
    }
}

/// The number of columns, then that many names, then that many types, each text with its length before it.
fn head_length(block: &[u8]) -> Option<usize> {
    let mut at = 0;
    let columns = read_varint(block, &mut at)?;
    for _ in 0..columns.checked_mul(2)? {
        let length = read_varint(block, &mut at)?;
        at = at.checked_add(length)?;
        if at > block.len() {
            return None;
        }
    }
    Some(at)
}

fn read_varint(block: &[u8], at: &mut usize) -> Option<usize> {
    let mut value = 0;
    for shift in (0..usize::BITS).step_by(7) {
        let byte = *block.get(*at)?;
        *at += 1;
        value |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::BlockJoiner;

    #[test]
    fn only_the_first_head_stays() {
        let mut joiner = BlockJoiner::new("RowBinaryWithNamesAndTypes");
        let head = b"\x01\x01a\x05UInt8".as_slice();
        assert_eq!(joiner.join([head, b"\x01\x02"].concat()).unwrap(), [head, b"\x01\x02"].concat());
        assert_eq!(joiner.join([head, b"\x03"].concat()).unwrap(), b"\x03");
        assert!(joiner.join(b"\x01\x01b\x05UInt8\x03".to_vec()).is_err());
    }

    #[test]
    fn a_head_that_is_cut_is_an_error() {
        for block in [b"\x01\x05a".as_slice(), b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"] {
            assert!(BlockJoiner::new("RowBinaryWithNamesAndTypes").join(block.to_vec()).is_err());
        }
    }

    #[test]
    fn other_formats_pass_as_they_are() {
        assert_eq!(BlockJoiner::new("TSV").join(b"a\n".to_vec()).unwrap(), b"a\n");
    }
}
