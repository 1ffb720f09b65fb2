//! The oracle: eight bytes a step by eight tables (Kounavis and Berry, "slicing-by-8").

/// The polynomial 0x1EDC6F41 with its bits reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// `TABLES[k][b]`: the CRC register after byte `b` and `k` zero bytes.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut k = 1;
    while k < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[k - 1][byte];
            tables[k][byte] = before >> 8 ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        k += 1;
    }
    tables
}

/// The CRC-32C of `data`, going on from `seed`.
pub(crate) fn crc32c(seed: u32, data: &[u8]) -> u32 {
    let mut crc = !seed;
    let (steps, rest) = data.as_chunks::<8>();
    for step in steps {
        let word = u64::from_le_bytes(*step) ^ u64::from(crc);
        // Byte 0 has seven bytes behind it, byte 7 none. Indices are bytes: always in the table.
        crc = word
            .to_le_bytes()
            .into_iter()
            .zip(TABLES.iter().rev())
            .fold(0, |crc, (byte, table)| crc ^ table[usize::from(byte)]);
    }
    for &byte in rest {
        crc = crc >> 8 ^ TABLES[0][usize::from(crc.to_le_bytes()[0] ^ byte)];
    }
    !crc
}
