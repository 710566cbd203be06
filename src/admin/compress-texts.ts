import type { FastifyInstance } from 'fastify'
import { acceptedForms, compress } from '../http/content-coding.ts'
import { requestHeader } from '../http/headers/header-lines.ts'

/** Shorter ones fit into one packet. */
const minBytes = 1_400

const asBuffer = (payload: unknown): Buffer | undefined => {
  if (Buffer.isBuffer(payload)) return payload
  return typeof payload === 'string' ? Buffer.from(payload) : undefined
}

/** Sends pages, their files and reports in gzip to clients that accept it. What has an entity tag is left as it is. */
export const compressTexts = (server: FastifyInstance): void => {
  server.addHook('onSend', async (request, reply, payload) => {
    const content = asBuffer(payload)
    if (content === undefined || content.length < minBytes || reply.hasHeader('etag')) return payload
    const vary = reply.getHeader('vary')
    reply.header('vary', vary === undefined ? 'Accept-Encoding' : `${String(vary)}, Accept-Encoding`)
    const [coding] = acceptedForms(requestHeader(request.headers, 'accept-encoding') ?? '', ['gzip']).codings
    const coded = coding === undefined ? undefined : await compress(content, coding)
    if (coded === undefined) return payload
    // Fastify has set the length of the uncoded text.
    reply.header('content-encoding', 'gzip').header('content-length', coded.length)
    return coded
  })
}
