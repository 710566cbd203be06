import { request as sendRequest } from 'node:http'

/** A response; field names in lower case, repeated lines joined. */
export type PlainResponse = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
}

export type PlainRequest = {
  readonly method: string
  /** Path and query: sent as it is, which `fetch` does not do with dot segments and doubled slashes. */
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  readonly content: string | undefined
}

/** Sends a request on its own connection. */
export function send(
  origin: string,
  { method, target, headers, content }: PlainRequest,
): Promise<PlainResponse> {
  const { hostname, port } = new URL(origin)
  const length = content === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(content)) }
  return new Promise((resolve, reject) => {
    const request = sendRequest(
      { hostname, port, method, path: target, headers: { ...headers, ...length }, agent: false },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => {
          const joined = Object.entries(response.headers).map(([name, value]) => [name, String(value)])
          resolve({
            status: response.statusCode ?? 0,
            headers: Object.fromEntries(joined),
            text: Buffer.concat(chunks).toString(),
          })
        })
      },
    )
    request.on('error', reject)
    request.end(content)
  })
}
