//! LZ4 both ways: frames out (`Accept-Encoding: lz4`), ClickHouse's own blocks in (`decompress=1`).

use std::io::Write;

use cityhash_rs::cityhash_102_128;
use lz4_flex::frame::FrameEncoder;

use super::error::QueryError;

/// Turns the parts of a response into one LZ4 frame, a part at a time, or leaves them as they are.
pub(super) enum Encoder {
    /// No compression was asked for.
    Plain,
    /// An LZ4 frame.
    Lz4(Box<FrameEncoder<Vec<u8>>>),
}

impl Encoder {
    pub(super) fn new(lz4: bool) -> Self {
        if lz4 { Self::Lz4(Box::new(FrameEncoder::new(Vec::new()))) } else { Self::Plain }
    }

    /// The bytes to send for this part; the receiver can decode all of the part from them.
    pub(super) fn part(&mut self, bytes: Vec<u8>) -> Vec<u8> {
        match self {
            Self::Plain => bytes,
            Self::Lz4(encoder) => {
                // Writing to a Vec cannot fail.
                let _ = encoder.write_all(&bytes).and_then(|()| encoder.flush());
                std::mem::take(encoder.get_mut())
            }
        }
    }

    /// The bytes that end the response.
    pub(super) fn end(self) -> Vec<u8> {
        match self {
            Self::Plain => Vec::new(),
            Self::Lz4(encoder) => encoder.finish().unwrap_or_default(),
        }
    }
}

const CHECKSUM_BYTES: usize = 16;
const HEADER_BYTES: usize = 9;
const METHOD_LZ4: u8 = 0x82;
const METHOD_NONE: u8 = 0x02;
/// ClickHouse's own limit for a block, DBMS_MAX_COMPRESSED_SIZE.
const MAX_BLOCK_BYTES: usize = 1 << 30;

/// Undoes ClickHouse's block compression: checksum (16), method (1), size with this header (4), plain size (4), data.
#[derive(Default)]
pub(super) struct BlockDecoder {
    pending: Vec<u8>,
}

impl BlockDecoder {
    /// Takes in bytes as they arrive and gives what they complete.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Vec<u8>, QueryError> {
        self.pending.extend_from_slice(bytes);
        let mut plain = Vec::new();
        let mut at = 0;
        while let Some(used) = decode_block(self.pending.get(at..).unwrap_or_default(), &mut plain)? {
            at += used;
        }
        self.pending.drain(..at);
        Ok(plain)
    }

    /// Fails when the data end inside a block.
    pub(super) fn finish(self) -> Result<(), QueryError> {
        if self.pending.is_empty() {
            Ok(())
        } else {
            Err(QueryError::bad_data("the data end inside a compressed block"))
        }
    }
}

fn decode_block(input: &[u8], plain: &mut Vec<u8>) -> Result<Option<usize>, QueryError> {
    let Some((checksum, rest)) = input.split_first_chunk::<CHECKSUM_BYTES>() else { return Ok(None) };
    let Some((&[method, c0, c1, c2, c3, p0, p1, p2, p3], _)) = rest.split_first_chunk::<HEADER_BYTES>() else {
        return Ok(None);
    };
    let size = u32::from_le_bytes([c0, c1, c2, c3]) as usize;
    let plain_size = u32::from_le_bytes([p0, p1, p2, p3]) as usize;
    if !(HEADER_BYTES..=MAX_BLOCK_BYTES).contains(&size) || plain_size > MAX_BLOCK_BYTES {
        return Err(QueryError::bad_data("a compressed block has an impossible size; is the body really compressed?"));
    }
    let Some(block) = rest.get(..size) else { return Ok(None) };
    let data = block.get(HEADER_BYTES..).unwrap_or_default();
    // The two halves of the hash come in the other order on the wire.
    let hash = cityhash_102_128(block).rotate_left(64).to_le_bytes();
    if hash != *checksum {
        return Err(QueryError::bad_data("a compressed block does not match its checksum"));
    }
    match method {
        METHOD_LZ4 => {
            let decoded = lz4_flex::block::decompress(data, plain_size)
                .map_err(|error| QueryError::bad_data(&format!("a compressed block is broken: {error}")))?;
            plain.extend_from_slice(&decoded);
        }
        METHOD_NONE => plain.extend_from_slice(data),
        other => {
            return Err(QueryError::bad_data(&format!("compression method {other:#x} is not served; use LZ4 or none")));
        }
    }
    Ok(Some(CHECKSUM_BYTES + size))
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use lz4_flex::frame::FrameDecoder;

    use super::{BlockDecoder, Encoder, HEADER_BYTES, METHOD_LZ4};

    fn block(plain: &[u8]) -> Vec<u8> {
        let data = lz4_flex::block::compress(plain);
        let mut block = vec![METHOD_LZ4];
        block.extend_from_slice(&u32::try_from(data.len() + HEADER_BYTES).unwrap().to_le_bytes());
        block.extend_from_slice(&u32::try_from(plain.len()).unwrap().to_le_bytes());
        block.extend_from_slice(&data);
        let hash = cityhash_rs::cityhash_102_128(&block).rotate_left(64).to_le_bytes();
        [hash.as_slice(), &block].concat()
    }

    #[test]
    fn blocks_are_decoded_however_they_are_cut() {
        let wire = [block(b"hello "), block(b"world")].concat();
        for size in [1, 7, wire.len()] {
            let mut decoder = BlockDecoder::default();
            let plain: Vec<u8> = wire.chunks(size).flat_map(|part| decoder.push(part).unwrap()).collect();
            decoder.finish().unwrap();
            assert_eq!(plain, b"hello world");
        }
    }

    #[test]
    fn broken_and_cut_blocks_are_errors() {
        let mut wire = block(b"hello");
        let last = wire.len() - 1;
        assert!({
            let mut decoder = BlockDecoder::default();
            decoder.push(&wire[..last]).unwrap();
            decoder.finish().is_err()
        });
        wire[last] ^= 1;
        assert!(BlockDecoder::default().push(&wire).is_err());
        assert!(BlockDecoder::default().push(&[b'x'; 64]).is_err());
    }

    #[test]
    fn a_frame_decodes_to_its_parts() {
        let mut encoder = Encoder::new(true);
        let mut wire = encoder.part(b"one ".to_vec());
        wire.extend(encoder.part(vec![b'x'; 200_000]));
        wire.extend(encoder.end());
        let mut plain = Vec::new();
        FrameDecoder::new(wire.as_slice()).read_to_end(&mut plain).unwrap();
        assert_eq!(plain.len(), 200_004);
        assert!(plain.starts_with(b"one x"));
    }
}
