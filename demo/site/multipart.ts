/** One part of a multipart form (RFC 7578). */
export type FormPart = {
  readonly name: string
  readonly fileName: string | undefined
  readonly content: Buffer
}

const boundaryOf = (contentType: string): string | undefined => {
  const match = /boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))/i.exec(contentType)
  return match?.[1] ?? match?.[2]
}

const parameter = (header: string, name: string): string | undefined => {
  const start = header.indexOf(`; ${name}="`)
  if (start === -1) return undefined
  const from = start + name.length + 4
  const end = header.indexOf('"', from)
  return end === -1 ? undefined : header.slice(from, end)
}

const readPart = (part: Buffer): FormPart | undefined => {
  const head = part.indexOf('\r\n\r\n')
  if (head === -1) return undefined
  const disposition = part
    .subarray(0, Math.min(head, 4096))
    .toString('utf8')
    .split('\r\n')
    .find((line) => line.toLowerCase().startsWith('content-disposition:'))
  const name = disposition && parameter(disposition, 'name')
  if (disposition === undefined || name === undefined) return undefined
  return { name, fileName: parameter(disposition, 'filename'), content: part.subarray(head + 4) }
}

/** The parts of a multipart form; what cannot be read is left out. */
export const parseMultipart = (content: Buffer, contentType: string): readonly FormPart[] => {
  const boundary = boundaryOf(contentType)
  if (boundary === undefined) return []
  const delimiter = Buffer.from(`--${boundary}`)
  const parts: FormPart[] = []
  let position = content.indexOf(delimiter)
  while (position !== -1 && parts.length < 1000) {
    const start = position + delimiter.length + 2
    const next = content.indexOf(`\r\n--${boundary}`, start)
    if (next === -1) break
    const part = readPart(content.subarray(start, next))
    if (part !== undefined) parts.push(part)
    position = next + 2
  }
  return parts
}
