import type { GatewayRequest, GatewayResponse } from '../../src/http/message.ts'
import type { Matched, Outgoing, Ready, Received } from '../../src/pipeline/exchange.ts'
import { createTargetMemo, type Service } from '../../src/pipeline/service.ts'
import { createRouter } from '../../src/service/router.ts'
import type { Found } from '../../src/service/row.ts'
import { createSiteValidator } from '../../src/wordpress/arguments/site-validator.ts'
import { siteRows } from '../../src/wordpress/routes/route-table.ts'
import { createSiteTagger } from '../../src/wordpress/tags/site-tagger.ts'
import { siteTags } from '../../src/wordpress/tags/tags.ts'

const limits = { queryParameters: 64, jsonDepth: 16 }

/** A site service without an upstream: what a phase needs that is not under test is missing, and would throw. */
export const siteService = (more: Partial<Service> = {}): Service =>
  ({
    name: 'site',
    contract: 'site',
    mount: '',
    host: '',
    challenge: undefined,
    declaredFields: [],
    keyParameters: [],
    access: undefined,
    unlisted: 'refuse',
    bodyBytes: 1024,
    uploadBytes: 4096,
    find: createRouter(siteRows).find,
    memo: createTargetMemo(10),
    validator: createSiteValidator({ limits, unknownParameters: 'strip', trackingParameters: [] }),
    tagger: createSiteTagger({ service: 'site', table: siteTags }),
    policyFor: () => ({ profile: 'safe', rule: undefined }),
    translation: undefined,
    invalidatesTargets: false,
    storesAnswers: true,
    sharing: () => [],
    serviceAt: () => undefined,
    publicRoot: 'https://public.test',
    roots: ['https://public.test'],
    anyOrigins: undefined,
    basePath: '/wp-json',
    upstreamTotalMs: 1000,
    local: undefined,
    batch: undefined,
    ...more,
  }) as Service

/** An exchange as the edge makes it. */
export const received = (
  target: string,
  more: Partial<GatewayRequest> = {},
  service = siteService(),
): Received => {
  const [path = '/', query = ''] = target.split('?')
  return {
    id: 'id-1',
    origin: 'client',
    client: { address: '127.0.0.1', protocol: 'http', viaTrustedProxy: false },
    service,
    request: {
      method: 'GET',
      target,
      fields: {},
      content: undefined,
      signal: new AbortController().signal,
      ...more,
    },
    path,
    query,
    record: {
      route: 'unmatched',
      cache: 'none',
      upstreamMs: 0,
      ageSeconds: -1,
      target: undefined,
      code: undefined,
      reason: undefined,
      invalidated: undefined,
      taken: undefined,
      trace: undefined,
    },
    send: undefined,
    admitted: undefined,
    identity: undefined,
  }
}

export const matched = (
  target: string,
  more: Partial<GatewayRequest> = {},
  service = siteService(),
): Matched => {
  const exchange = received(target, more, service)
  const method = exchange.request.method
  const matching = service.find(method, exchange.path) as Found
  return { ...exchange, method, matching, recalled: undefined }
}

export const ready = (target: string, more: Partial<GatewayRequest> = {}, service = siteService()): Ready => {
  const exchange = matched(target, more, service)
  const { content } = exchange.request
  return {
    ...exchange,
    target,
    arguments: {},
    sendsUndeclared: false,
    content,
    sensitive: undefined,
    variant: undefined,
    policy: service.policyFor(exchange.method, exchange.path),
  }
}

export const outgoing = (
  target: string,
  more: Partial<GatewayRequest> = {},
  service = siteService(),
): Outgoing => ({
  ...ready(target, more, service),
  extraFields: {},
  withheld: new Set(),
  acceptEncoding: 'identity',
  background: false,
  signal: new AbortController().signal,
})

export const response = (
  status: number,
  content = '{}',
  fields: readonly string[] = [],
): GatewayResponse => ({
  status,
  fields,
  content: Buffer.from(content),
})
