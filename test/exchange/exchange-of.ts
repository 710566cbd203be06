import type { LimitsConfig, SiteConfig } from '../../src/config/config.ts'
import { ConfigSnapshot } from '../../src/exchange/config-snapshot.ts'
import type { Outgoing } from '../../src/exchange/forward/outgoing.ts'
import {
  arrived,
  type MatchedContext,
  type RequestContext,
  type ValidatedContext,
} from '../../src/exchange/request-context.ts'
import type { Service, ServiceAddress } from '../../src/exchange/service.ts'
import type { GatewayRequest, GatewayResponse } from '../../src/http/message.ts'
import type { Contract } from '../../src/service/contract.ts'
import type { Found } from '../../src/service/row.ts'
import { createTargetMemo } from '../../src/service/target-memo.ts'
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

export const siteAddress: ServiceAddress = {
  host: '',
  publicRoot: 'https://public.test',
  publicHost: 'public.test',
  hostHeader: undefined,
  servers: [],
  basePath: '/wp-json',
  roots: ['https://public.test'],
  translation: undefined,
  links: undefined,
}

/** A site service without an upstream: what a phase needs that is not under test is missing, and would throw. */
export const siteService = (more: Partial<Service> = {}): Service =>
  ({
    name: 'site',
    contract: siteContract(),
    mount: '',
    hosts: [],
    address: siteAddress,
    access: undefined,
    limits: { urlBytes: 8192, bodyBytes: 1024, uploadBytes: 4096, upstreamMs: 1000 },
    responses: { compresses: false, mayBeStored: true },
    memo: createTargetMemo(10),
    ...more,
  }) as Service

/** An exchange as the edge makes it. */
export const received = (
  target: string,
  more: Partial<GatewayRequest> = {},
  service = siteService(),
): RequestContext => {
  const [path = '/', query = ''] = target.split('?')
  return arrived({
    id: 'id-1',
    origin: 'client',
    client: { address: '127.0.0.1', protocol: 'http', viaTrustedProxy: false },
    snapshot: new ConfigSnapshot([service]),
    service,
    request: {
      method: 'GET',
      target,
      headers: {},
      content: undefined,
      signal: new AbortController().signal,
      ...more,
    },
    path,
    query,
  })
}

export const matched = (
  target: string,
  more: Partial<GatewayRequest> = {},
  service = siteService(),
): MatchedContext => {
  const exchange = received(target, more, service)
  const method = exchange.request.method
  const matching = service.contract.find(method, exchange.path) as Found
  return { ...exchange, method, matching, recalled: undefined }
}

export const ready = (
  target: string,
  more: Partial<GatewayRequest> = {},
  service = siteService(),
): ValidatedContext => {
  const exchange = matched(target, more, service)
  const { content } = exchange.request
  return {
    ...exchange,
    target,
    arguments: {},
    sendsUndeclared: false,
    content,
    uncacheable: undefined,
    variant: undefined,
    policy: service.contract.policyFor(exchange.method, exchange.path),
  }
}

export const outgoing = (
  target: string,
  more: Partial<GatewayRequest> = {},
  service = siteService(),
): Outgoing => ({
  context: ready(target, more, service),
  effect: 'read',
  extraHeaders: {},
  stripped: new Set(),
  acceptEncoding: 'identity',
  background: false,
  signal: new AbortController().signal,
})

export const response = (
  status: number,
  content = '{}',
  headers: readonly string[] = [],
): GatewayResponse => ({
  status,
  headers,
  content: Buffer.from(content),
})
