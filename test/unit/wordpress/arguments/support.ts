import type { Validation, Validator } from '../../../../src/service/contract.ts'
import type { Endpoint, Row } from '../../../../src/service/row.ts'
import {
  createSiteValidator,
  type SiteValidatorOptions,
} from '../../../../src/wordpress/arguments/site-validator.ts'
import { coreRows } from '../../../../src/wordpress/routes/core-rows.ts'
import { siteRows } from '../../../../src/wordpress/routes/route-table.ts'

export const siteOptions: SiteValidatorOptions = {
  limits: { queryParameters: 256, jsonDepth: 64 },
  unknownParameters: 'strip',
  trackingParameters: ['utm_*', 'fbclid'],
}

export const siteValidator: Validator = createSiteValidator(siteOptions)

const rowOf = (id: string): Row => {
  const row = [...siteRows, ...coreRows].find((candidate) => candidate.id === id)
  if (row === undefined) throw new Error(`no row ${id}`)
  return row
}

const endpointOf = (row: Row, method: string): Endpoint => {
  const endpoint = row.endpoints.find(({ methods }) => methods.some((one) => one === method))
  if (endpoint === undefined) throw new Error(`no ${method} on ${row.id}`)
  return endpoint
}

export type Asked = {
  readonly row?: string
  readonly method?: string
  readonly path?: Readonly<Record<string, string>>
  readonly query?: string
  readonly content?: string | Buffer | undefined
  readonly contentType?: string | undefined
}

/** Validates one request; by default a GET of the list of posts. */
export const ask = (asked: Asked, validator: Validator = siteValidator): Validation => {
  const { method = 'GET', query = '', path = {}, content } = asked
  const row = rowOf(asked.row ?? 'posts.collection')
  return validator.validate({
    method,
    row,
    endpoint: endpointOf(row, method),
    pathParameters: path,
    query,
    contentType: asked.contentType ?? (content === undefined ? undefined : 'application/json'),
    content: content === undefined ? undefined : Buffer.from(content),
  })
}

/** The canonical query of a list of posts, or the refusal's code. */
export const canonical = (query: string, row = 'posts.collection'): string => {
  const response = ask({ query, row })
  return response.kind === 'valid' ? response.query : `! ${response.code}`
}

/** Typed arguments of a valid request. */
export const argumentsOf = (asked: Asked): Readonly<Record<string, unknown>> => {
  const response = ask(asked)
  if (response.kind === 'invalid') throw new Error(JSON.stringify(response.body))
  return response.arguments
}

/** Body of a refused request. */
export const refusalOf = (asked: Asked): unknown => {
  const response = ask(asked)
  if (response.kind === 'valid') throw new Error(`valid: ${response.query}`)
  return response.body
}
