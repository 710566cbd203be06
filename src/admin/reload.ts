import type { FastifyInstance, FastifyReply } from 'fastify'
import type { AdminEvent } from './events.ts'
import type { Operator, ReloadAnswer } from './operator.ts'
import { sendProblem } from './problem.ts'

const statuses = { invalid: 422, 'restart-needed': 409, failed: 500 } as const

const sendAnswer = (reply: FastifyReply, answer: ReloadAnswer): FastifyReply => {
  if (answer.kind === 'done') return reply.send({ outcome: answer.outcome, hash: answer.hash })
  const { outcome, details } = answer
  const detail = details.length === 0 ? 'See the log.' : details.join('\n')
  return sendProblem(reply, statuses[outcome], outcome, detail)
}

/** POST /reload: the file's configuration in force, or why the one before stays. */
export const addReload = (
  server: FastifyInstance,
  { operator, report }: { readonly operator: Operator; report(event: AdminEvent): void },
): void => {
  server.post('/reload', async (request, reply) => {
    report({ kind: 'admin-reload', address: request.socket.remoteAddress ?? '' })
    return sendAnswer(reply, await operator.reload())
  })
}
