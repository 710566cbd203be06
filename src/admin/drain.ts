import type { FastifyInstance } from 'fastify'
import type { AdminEvent } from './events.ts'
import type { Operator } from './operator.ts'

/** POST /drain: what SIGTERM does, for who cannot send signals. The answer comes first, the end later. */
export const addDrain = (
  server: FastifyInstance,
  { operator, report }: { readonly operator: Operator; report(event: AdminEvent): void },
): void => {
  server.post('/drain', async (request, reply) => {
    report({ kind: 'admin-drain', address: request.socket.remoteAddress ?? '' })
    operator.drain()
    return reply.code(202).send({ outcome: 'draining' })
  })
}
