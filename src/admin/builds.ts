import type { FastifyInstance, FastifyReply } from 'fastify'
import { isJsonObject } from '../http/json-text.ts'
import type { Operator } from './operator.ts'

type SendProblem = (reply: FastifyReply, status: number, code: string, detail: string) => FastifyReply

/** Undefined where the body is not one of a build. */
const readBegin = (body: unknown): { readonly since: string | undefined } | undefined => {
  if (!isJsonObject(body) || Object.keys(body).some((name) => name !== 'since')) return undefined
  const { since } = body
  return since === undefined || typeof since === 'string' ? { since } : undefined
}

/** Builds of site generators (docs/builds.md): begins one, and tells what has changed since. */
export const addBuilds = (
  server: FastifyInstance,
  { builds }: Pick<Operator, 'builds'>,
  problem: SendProblem,
): void => {
  const unknown = (reply: FastifyReply): FastifyReply =>
    problem(
      reply,
      404,
      'unknown-build',
      'No such build is known. Begin one without since, and build every page.',
    )
  server.post('/builds', async (request, reply) => {
    const reading = readBegin(request.body ?? {})
    if (reading === undefined) return problem(reply, 400, 'invalid-build', 'since: the id of a build')
    const begun = await builds.begin(reading.since)
    if (begun === undefined) return unknown(reply)
    const { build, changes } = begun
    return reply.code(201).send({ build, ...(changes ?? { everything: true }) })
  })
  server.get('/builds/:build', async (request, reply) => {
    const { build } = request.params as { readonly build: string }
    const changes = await builds.changes(build)
    return changes === undefined ? unknown(reply) : reply.send({ build, ...changes })
  })
}
