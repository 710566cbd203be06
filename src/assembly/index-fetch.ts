import { randomBytes } from 'node:crypto'
import type { IndexAnswer } from '../discovery/index-source.ts'
import { unlimited } from '../http/byte-budget.ts'
import type { GatewayResponse } from '../http/message.ts'
import { permits } from '../pipeline/any-origin.ts'
import { completed } from '../pipeline/invalidate-write.ts'
import type { Upstream } from '../upstream/upstream.ts'

const mostIndexBytes = 8 * 1024 * 1024

/** Reads the index of a site, under an origin that the site cannot know: its answer tells whether it lets every origin read. */
export const createIndexFetch = (upstream: Upstream, basePath: string) => {
  let anyOrigin = false
  const ask = (signal: AbortSignal, fields: readonly string[]): Promise<GatewayResponse> =>
    upstream.forward({
      method: 'GET',
      target: `${basePath}/`,
      fields: [
        'accept',
        'application/json',
        'accept-encoding',
        'identity',
        'user-agent',
        'trellis',
        ...fields,
      ],
      content: undefined,
      signal,
    })
  const fetchIndex = async (signal: AbortSignal): Promise<IndexAnswer> => {
    const origin = `https://${randomBytes(8).toString('hex')}.invalid`
    const first = await ask(signal, ['origin', origin])
    const isRefused = first.status >= 400 && first.status < 500
    if (isRefused && first.content !== undefined && !Buffer.isBuffer(first.content)) first.content.destroy()
    // A plugin may refuse what comes from other origins: the index is not to be missed for that.
    const response = isRefused ? await ask(signal, []) : first
    anyOrigin = response.status === 200 && permits(response.fields, origin)
    const { content, status } = await completed(response, mostIndexBytes, unlimited)
    if (content === undefined) return { status, content: Buffer.alloc(0) }
    if (Buffer.isBuffer(content)) return { status, content }
    content.destroy()
    throw new RangeError('the index of the upstream is larger than 8 MiB')
  }
  return { fetchIndex, allowsAnyOrigin: () => anyOrigin }
}
