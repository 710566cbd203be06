import type { LimitsConfig, SiteConfig } from '../../src/config/config.ts'
import type { Matched, Outgoing, Ready, Received } from '../../src/exchange/exchange.ts'
import { createTargetMemo, type Service } from '../../src/exchange/service.ts'
import type { GatewayRequest, GatewayResponse } from '../../src/http/message.ts'
import type { Contract } from '../../src/service/contract.ts'
import type { Found } from '../../src/service/row.ts'
import { createSiteContract } from '../../src/wordpress/contract.ts'

const limits = { queryParameters: 64, jsonDepth: 16, urlBytes: 8192 }

/** The contract of sites, with the routes of its specification alone. */
export const siteContract = (more: Partial<Contract> = {}): Contract => {
  const config = {
    name: 'site',
    names: 'wordpress',
    upstream: { targets: 'embedded', basePath: '/wp-json' },
    unlistedRoutes: 'refuse',
    parameters: { unknown: 'strip', tracking: [] },
    batch: { maxItems: 25 },
    cache: { properties: {} },
  }
  const options = {
    limits: limits as LimitsConfig,
    policyFor: () => ({ profile: 'safe', rule: undefined }) as const,
  }
  return { ...createSiteContract(config as unknown as SiteConfig, options), ...more }
}

/** A site service without an upstream: what a phase needs that is not under test is missing, and would throw. */
export const siteService = (more: Partial<Service> = {}): Service =>
  ({
    name: 'site',
    contract: siteContract(),
    mount: '',
    host: '',
    access: undefined,
    bodyBytes: 1024,
    uploadBytes: 4096,
    memo: createTargetMemo(10),
    translation: undefined,
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
  const matching = service.contract.find(method, exchange.path) as Found
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
    policy: service.contract.policyFor(exchange.method, exchange.path),
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
