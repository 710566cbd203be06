import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { addressGroup } from '../http/bounds/client-network.ts'
import { requestHeader } from '../http/headers/header-lines.ts'
import type { ChangesCredential, ChangesResponse } from '../wordpress/changes/change-feeds.ts'
import type { Operator } from './operator.ts'

export const changesPath = '/changes'

type SendProblem = (reply: FastifyReply, status: number, code: string, detail: string) => FastifyReply

const changeStatuses: Readonly<Record<string, number>> = {
  'too-many': 429,
  unreadable: 400,
  'not-spread': 503,
}

const maxChangeBytes = 256 * 1024

const sendChangesResponse = (
  reply: FastifyReply,
  response: ChangesResponse,
  problem: SendProblem,
): FastifyReply => {
  if (response.kind === 'dropped') {
    const { sequence, entries } = response
    return reply.send(sequence === undefined ? { dropped: entries } : { sequence, dropped: entries })
  }
  const status = changeStatuses[response.reason] ?? 401
  if (status === 401) reply.header('www-authenticate', 'Bearer realm="trellis changes"')
  if (status === 429 || status === 503) reply.header('retry-after', '1')
  return problem(reply, status, response.reason, response.detail)
}

const credentialIn = (headers: IncomingHttpHeaders): ChangesCredential => ({
  signature: requestHeader(headers, 'trellis-signature'),
  authorization: headers.authorization,
})

/** POST /changes: a service reports what it has changed. Its own token replaces admin.token, and can only drop. */
export const addChanges = (
  server: FastifyInstance,
  operator: Pick<Operator, 'changes'>,
  problem: SendProblem,
): void => {
  server.register(async (scope) => {
    // The signature covers the bytes as sent.
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser(
      /^application\/json[\t ]*(?:;|$)/i,
      { parseAs: 'buffer', bodyLimit: maxChangeBytes },
      (_request, body, done) => done(null, body),
    )
    // Before the body is read: it may be long, or arrive slowly.
    scope.addHook('onRequest', async ({ headers, raw }, reply) => {
      const refuse = (refusal: ChangesResponse): FastifyReply =>
        sendChangesResponse(reply.header('connection', 'close'), refusal, problem)
      const admission = operator.changes.admit(credentialIn(headers), {
        address: addressGroup(raw.socket.remoteAddress ?? ''),
        hasArrived: () => raw.complete,
        refuse,
      })
      if (admission.kind === 'refused') return refuse(admission)
      reply.raw.once('close', admission.release)
      return undefined
    })
    scope.post(changesPath, { bodyLimit: maxChangeBytes }, async ({ body, headers, raw }, reply) =>
      sendChangesResponse(
        reply,
        await operator.changes.receive({
          ...credentialIn(headers),
          target: raw.url ?? '',
          body: Buffer.isBuffer(body) ? body : Buffer.alloc(0),
        }),
        problem,
      ),
    )
  })
}
