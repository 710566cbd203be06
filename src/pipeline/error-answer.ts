import { GatewayError } from '../errors.ts'
import type { GatewayResponse } from '../http/message.ts'
import type { Service } from './service.ts'

type Contract = Service['contract']

const message = (error: GatewayError): string =>
  error.detail === undefined ? error.message : `${error.message} ${error.detail}`

const bodies: Readonly<Record<Contract, (error: GatewayError) => unknown>> = {
  site: (error) => ({
    code: error.facts.siteCode ?? `trellis_${error.code}`,
    message: message(error),
    data: { status: error.facts.status },
  }),
  plants: (error) => ({ error: error.facts.status, message: message(error) }),
  // RFC 9457: `type` about:blank means that the status says it all; `code` is an extension member.
  open: (error) => ({
    type: 'about:blank',
    title: error.message,
    status: error.facts.status,
    ...(error.detail === undefined ? {} : { detail: error.detail }),
    code: error.code,
  }),
}

const contentTypes: Readonly<Record<Contract, string>> = {
  site: 'application/json; charset=UTF-8',
  plants: 'application/json; charset=utf-8',
  open: 'application/problem+json',
}

/** A JSON answer that the gateway makes itself, complete with its framing. */
const jsonAnswer = (
  status: number,
  contentType: string,
  body: unknown,
  fields: readonly string[] = [],
): GatewayResponse => {
  const content = Buffer.from(JSON.stringify(body))
  return {
    kind: 'response',
    status,
    fields: ['Content-Type', contentType, 'Content-Length', String(content.length), ...fields],
    content,
  }
}

/** Anything thrown on the way, as one of our errors. */
export const asGatewayError = (thrown: unknown): GatewayError =>
  thrown instanceof GatewayError ? thrown : new GatewayError('internal', { cause: thrown })

const errorFields = (error: GatewayError): string[] => {
  const fields = ['Cache-Control', 'no-store', 'X-Content-Type-Options', 'nosniff', ...error.fields]
  if (error.retryAfterSeconds !== undefined) fields.push('Retry-After', String(error.retryAfterSeconds))
  // The rest of the content was not read; what comes behind it must not be taken for a request.
  if (error.code === 'content_too_large' || error.code === 'request_timeout') {
    fields.push('Connection', 'close')
  }
  return fields
}

/** The one place where an error becomes what a client of the service expects to read. */
export const errorAnswer = (contract: Contract, error: GatewayError): GatewayResponse =>
  jsonAnswer(
    error.facts.status,
    contentTypes[contract],
    error.body ?? bodies[contract](error),
    errorFields(error),
  )

/** A refusal whose body a validator has already made in the service's shape. */
export const refusalAnswer = (contract: Contract, status: number, body: unknown): GatewayResponse =>
  jsonAnswer(status, contentTypes[contract], body, ['X-Content-Type-Options', 'nosniff'])
