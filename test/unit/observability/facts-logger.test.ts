import { pino } from 'pino'
import { expect, test } from 'vitest'
import { factsLogger } from '../../../src/observability/logger.ts'

const linesOf = (write: (logger: pino.Logger) => void): string[] => {
  const lines: string[] = []
  const redact = { paths: ['*.authorization', '*.token', 'err.opts'], censor: '[redacted]' }
  write(
    pino(
      { base: null, timestamp: () => ',"time":"now"', redact },
      { write: (line) => void lines.push(line) },
    ),
  )
  return lines
}

const facts = {
  id: 'a-1',
  service: 'site',
  route: '/site/v2/posts/{id}',
  code: 'no_route',
  held: 3,
  weight: undefined,
}

test('a line of facts is the line that the redacting log writes of them', () => {
  const redacting = linesOf((logger) => logger.info(facts, 'request-refused'))
  expect(linesOf((logger) => factsLogger(logger).info(facts, 'request-refused'))).toEqual(redacting)
  expect(redacting[0]).toContain('"code":"no_route","held":3,"msg":"request-refused"')
})

test('members of a log record itself are redacted as before', () => {
  const [line] = linesOf((logger) => {
    factsLogger(logger)
    logger.warn({ request: { authorization: 'secret', token: 'secret' }, err: { opts: 'secret' } }, 'failed')
  })
  expect(line).not.toContain('secret')
})
