import type { CacheRead } from '../cache/cache-read.ts'
import type { Config } from '../config/config.ts'
import { type HeaderChanges, withChanges } from '../http/headers/header-lines.ts'
import type { PublicLinks } from '../http/headers/links.ts'
import type { GatewayResponse } from '../http/message.ts'
import { targetOf, urlAtHost } from '../http/targets.ts'
import type { AnyOrigins, LocalDocuments, Translation } from '../service/connection.ts'
import type { Contract, WriteReceipts } from '../service/contract.ts'
import type { TargetMemo } from '../service/target-memo.ts'
import type { Upstream } from '../upstream/upstream.ts'
import type { Access } from './access.ts'

/** How clients and the upstream name a service: from the configuration, never from a request. */
export type ServiceAddress = {
  /** The host that the address is for, where responses depend on the host; otherwise ''. Part of the cache key. */
  readonly host: string
  /** Where clients find the service: absolute, no slash at the end. */
  readonly publicRoot: string
  /** Host and port that clients use, for `X-Forwarded-Host`. */
  readonly publicHost: string
  /** `Host` sent upstream; undefined: the one that the upstream is configured with. */
  readonly hostHeader: string | undefined
  /** The servers of the upstream's targets: services that have one in common may show the same content. */
  readonly servers: readonly string[]
  /** Path in front of the upstream's targets; '' for none. */
  readonly basePath: string
  /** Absolute URLs in front of all targets: first those at the upstream, last the one for clients. */
  readonly roots: readonly string[]
  /** Undefined where names and URLs stay as they are. */
  readonly translation: Translation | undefined
  /** URLs of the upstream in response headers, as clients reach them; undefined where `translation` does that. */
  readonly links: PublicLinks | undefined
}

/** Caches in front of the gateway, as a service sees them (docs/decisions/0023-downstream.md). */
export type Downstream = {
  /** May they store what is sent now? */
  readonly mayStore: () => boolean
  /** The lines for a response with these tags; undefined: they must not store it. */
  readonly linesFor: NonNullable<CacheRead['forDownstream']>
}

/** What handling a request needs of one service; src/gateway makes and closes it. */
export type Service = {
  readonly name: string
  readonly contract: Contract
  /** Its companion; undefined without a change feed that is read. */
  readonly writeReceipts: WriteReceipts | undefined
  /** Public path in front of everything; '' for the root. */
  readonly mount: string
  /** Patterns of the hosts that the service answers; none = every host. */
  readonly hosts: readonly string[]
  readonly address: ServiceAddress
  /** The address for one of the hosts; undefined where responses are the same for all of them. */
  readonly addressAt: ((host: string) => ServiceAddress) | undefined
  readonly upstream: Upstream
  /** Undefined: every client may use it. */
  readonly access: Access | undefined
  readonly limits: {
    /** Of a target that a client sends. */
    readonly urlBytes: number
    readonly bodyBytes: number
    readonly uploadBytes: number
    /** Longest time that a request may take at the upstream; 0 = no bound. */
    readonly upstreamMs: number
  }
  readonly websockets: boolean
  readonly responses: {
    /** To the headers of each; undefined where there are none. */
    readonly changes: HeaderChanges | undefined
    /** Undefined: the upstream's CORS headers pass through. */
    readonly cors: Config['cors'] | undefined
    /** Those that are not stored, and those of one caller, for clients that accept it. */
    readonly compresses: boolean
    /** By the rules or the profile, or as a document of the gateway. */
    readonly mayBeStored: boolean
    contentId(): string
    /** Caches in front of the gateway; undefined where there are none. */
    readonly downstream: Downstream | undefined
    /** Which routes the upstream lets every origin read; undefined where that has no effect. */
    readonly anyOrigins: AnyOrigins | undefined
  }
  readonly memo: TargetMemo
  /** The documents that the gateway answers itself. */
  readonly documents: LocalDocuments | undefined
}

/** The form of a service for requests to one of its hosts. */
export const serviceAtHost = (service: Service, host: string): Service =>
  service.addressAt === undefined
    ? service
    : { ...service, address: service.addressAt(host), addressAt: undefined }

/** What the upstream is asked for; `query` has no `?`. */
export const upstreamTarget = (
  { basePath, translation }: ServiceAddress,
  path: string,
  query: string,
): string => basePath + (translation?.toUpstreamTarget(path, query) ?? targetOf(path, query))

/** The response with the changes that its service makes to all responses; undefined: the service is unknown. */
export const changedResponse = (response: GatewayResponse, service: Service | undefined): GatewayResponse => {
  const changes = service?.responses.changes
  return changes === undefined ? response : { ...response, headers: withChanges(response.headers, changes) }
}

/** What stands in front of the targets of a service: its mount, with hosts behind the URL of the host. */
export const publicPrefix = (
  service: Pick<Service, 'hosts' | 'mount' | 'address'> | undefined,
  host: string,
): string => {
  if (service === undefined || service.hosts.length === 0) return service?.mount ?? ''
  return host === '' ? service.address.publicRoot : urlAtHost(service.address.publicRoot, host)
}
