import { request } from 'node:http'

/** What a client saw of one response. */
export type Sight = {
  /** A status, `cut`, or both. */
  readonly seen: string
  readonly cacheStatus: string
  readonly content: string
}

export type Question = {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly content?: string | Buffer
}

/** Asks on its own connection and reads to the end, whatever comes. */
export const ask = (url: string, { method = 'GET', headers = {}, content }: Question = {}): Promise<Sight> =>
  new Promise((resolve) => {
    const length = content === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(content)) }
    // As many header octets as the gateway takes of an upstream.
    const maxHeaderSize = 128 * 1024
    const sent = request(url, { method, agent: false, maxHeaderSize, headers: { ...headers, ...length } })
    let responded = false
    sent.on('response', (response) => {
      responded = true
      const chunks: Buffer[] = []
      const done = (seen: string): void =>
        resolve({
          seen,
          cacheStatus: String(response.headers['cache-status'] ?? ''),
          content: Buffer.concat(chunks).toString('latin1'),
        })
      response.on('data', (chunk: Buffer) => {
        // A response without end is not kept.
        if (chunks.length < 64) chunks.push(chunk)
      })
      response.on('end', () => done(String(response.statusCode)))
      response.on('error', () => done(`${response.statusCode} cut`))
    })
    // Behind an early answer the connection may break: what counts is the response.
    sent.on('error', () => {
      if (!responded) resolve({ seen: 'cut', cacheStatus: '', content: '' })
    })
    sent.end(content)
  })
