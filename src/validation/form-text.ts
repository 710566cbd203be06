const plus = 0x2b
const space = 0x20
const percent = 0x25
const firstBeyondAscii = 0x80
const digits = Buffer.from('0123456789abcdef')

/**
 * A form as text of ASCII: raw bytes beyond it as the escapes they stand for, so that text and escapes are decoded in one way,
 * and `+` as the space that it means. Byte by byte: patterns over a megabyte would hold everybody else up for half a second.
 */
export const formText = (content: Buffer): string => {
  let beyond = 0
  for (const byte of content) if (byte >= firstBeyondAscii) beyond += 1
  const text = Buffer.allocUnsafe(content.length + 2 * beyond)
  let at = 0
  for (const byte of content) {
    if (byte < firstBeyondAscii) {
      text[at++] = byte === plus ? space : byte
      continue
    }
    text[at++] = percent
    text[at++] = digits[byte >> 4] as number
    text[at++] = digits[byte & 15] as number
  }
  return text.toString('latin1', 0, at)
}
