import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { contentEntityTag } from '../http/entity-tags.ts'
import { evaluatePreconditions } from '../http/preconditions.ts'
import type { EntriesQuery, Operator } from './operator.ts'
import { sendProblem } from './problem.ts'

type Query = Readonly<Record<string, unknown>>

const mostEntries = 1000

/** Undefined when a value is not one of those documented. */
const readEntriesQuery = ({ sort = 'size', limit = '50' }: Query): EntriesQuery | undefined => {
  if (sort !== 'size' && sort !== 'hits' && sort !== 'age') return undefined
  if (typeof limit !== 'string' || !/^[1-9]\d{0,3}$/.test(limit) || Number(limit) > mostEntries) {
    return undefined
  }
  return { sort, limit: Number(limit) }
}

const fieldLine = /^([!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}):[ \t]*([^\0\r\n]{0,8192})$/

/** Lines of one name are one field, joined as they would be on their way in (RFC 9110 §5.3, RFC 9113 §8.2.3). */
const joined = (name: string, before: string | undefined, value: string): string =>
  before === undefined ? value : `${before}${name === 'cookie' ? '; ' : ', '}${value}`

/** `header=Name: value`, once or several times; undefined when one is no field line (RFC 9110 §5.6.2). */
const readFields = (header: unknown): Record<string, string> | undefined => {
  const lines = header === undefined ? [] : Array.isArray(header) ? header : [header]
  const fields = new Map<string, string>()
  for (const line of lines) {
    const [, name, value] = fieldLine.exec(String(line)) ?? []
    if (name === undefined || value === undefined) return undefined
    const key = name.toLowerCase()
    fields.set(key, joined(key, fields.get(key), value.trim()))
  }
  return Object.fromEntries(fields)
}

const isMethod = (text: unknown): text is string =>
  typeof text === 'string' && /^[A-Z][A-Z-]{0,31}$/.test(text)

/** Sends a document that changes seldom: clients ask each time, and mostly get a 304. */
const sendDocument = (request: FastifyRequest, reply: FastifyReply, content: Buffer): FastifyReply => {
  const etag = contentEntityTag(content)
  reply.header('cache-control', 'no-cache').header('etag', etag)
  const head = { status: 200, fields: ['ETag', etag] }
  const outcome = evaluatePreconditions(request.headers, request.method, head, 0)
  return outcome === 'not-modified'
    ? reply.code(304).send()
    : reply.type('application/json; charset=utf-8').send(content)
}

/** What an operator can look at; nothing here changes anything. */
export const addViews = (server: FastifyInstance, operator: Operator): void => {
  server.get('/cache/entries', async (request, reply) => {
    const query = readEntriesQuery(request.query as Query)
    if (query === undefined) {
      return sendProblem(reply, 400, 'invalid-query', `sort: size, hits or age; limit: 1 to ${mostEntries}`)
    }
    return reply.send({ sort: query.sort, entries: await operator.entries(query) })
  })
  server.get('/explain', async (request, reply) => {
    const { method = 'GET', url, header } = request.query as Query
    const fields = readFields(header)
    if (!isMethod(method) || typeof url !== 'string' || url === '' || fields === undefined) {
      const detail = 'url: a public URL or path; method: default GET; header: "Name: value", repeatable'
      return sendProblem(reply, 400, 'invalid-query', detail)
    }
    return reply.send(await operator.explain({ method, url, fields }))
  })
  server.get('/drift', (_request, reply) => reply.send(operator.drift()))
  server.get('/config', (_request, reply) => reply.send(operator.config()))
  server.get('/openapi.json', (request, reply) => sendDocument(request, reply, operator.openApi()))
}
