/** One item as it goes into an upstream batch, in the upstream's names. */
export type ChunkItem = {
  readonly method: string
  /** Path and query relative to the REST root. */
  readonly path: string
  readonly fields: Readonly<Record<string, string>>
  /** JSON, copied as it is. */
  readonly content: Buffer | undefined
}

const itemContent = ({ method, path, fields, content }: ChunkItem): Buffer => {
  const head = JSON.stringify({
    method,
    path,
    ...(Object.keys(fields).length > 0 ? { headers: fields } : {}),
  })
  if (content === undefined) return Buffer.from(head)
  return Buffer.concat([Buffer.from(`${head.slice(0, -1)},"body":`), content, Buffer.from('}')])
}

/** The body of an upstream batch. Its items have been admitted, so `normal` validation is asked for: no item decides over others. */
export const chunkContent = (items: readonly ChunkItem[]): Buffer => {
  const pieces: Buffer[] = [Buffer.from('{"validation":"normal","requests":[')]
  for (const [at, item] of items.entries()) {
    if (at > 0) pieces.push(Buffer.from(','))
    pieces.push(itemContent(item))
  }
  pieces.push(Buffer.from(']}'))
  return Buffer.concat(pieces)
}
