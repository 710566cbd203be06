import type { FastifyReply } from 'fastify'
import type { AccessRefusal } from './events.ts'

const refusals: Readonly<Record<AccessRefusal, readonly [status: number, detail: string]>> = {
  'credential-missing': [401, 'Send Authorization: Bearer with the value of admin.token.'],
  'credential-wrong': [401, 'The token differs from admin.token.'],
  'cross-site': [403, 'Requests from pages of other origins are refused.'],
  'host-by-name': [
    403,
    'Without admin.token, the admin side must be addressed as localhost or by IP address.',
  ],
  'not-loopback': [403, 'Without admin.token, writes are accepted from this host only.'],
  'not-json': [415, 'Send Content-Type: application/json.'],
}

/** Sends an error of the admin side (RFC 9457). */
export const sendProblem = (
  reply: FastifyReply,
  status: number,
  code: string,
  detail: string,
): FastifyReply =>
  reply
    .code(status)
    .type('application/problem+json')
    .send(JSON.stringify({ type: 'about:blank', status, code, detail }))

/** Tells whom the admin side turns away why. */
export const sendRefusal = (reply: FastifyReply, reason: AccessRefusal): FastifyReply => {
  const [status, detail] = refusals[reason]
  // RFC 9110 §11.6.1; Basic so that a browser asks for the token when somebody opens the documentation.
  if (status === 401) reply.header('www-authenticate', ['Bearer realm="trellis"', 'Basic realm="trellis"'])
  return sendProblem(reply, status, reason, detail)
}
