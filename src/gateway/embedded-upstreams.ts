import type { LimitsConfig, ServiceConfig } from '../config/config.ts'
import { plantStoreRequests } from '../openapi/contract.ts'
import { apiDocumentOf } from '../openapi/document/api-document.ts'
import { addressOf } from './service-address.ts'

/** A demo server that runs in this process, on loopback. */
export type EmbeddedUpstream = {
  readonly origin: string
  close(): Promise<void>
}

/** Starts the demo server for a service with `targets: [embedded]`; undefined where the service has other targets. */
export const startEmbedded = async (
  service: ServiceConfig,
  limits: LimitsConfig,
  publicUrl: string,
): Promise<EmbeddedUpstream | undefined> => {
  if (service.upstream.targets !== 'embedded') return undefined
  const { basePath } = service.upstream
  // The demo is loaded only where it is used.
  switch (service.contract) {
    case 'plants': {
      const { startEmbeddedPlants } = await import('../../demo/plants.ts')
      return startEmbeddedPlants({ basePath, requests: await plantStoreRequests(service, limits) })
    }
    case 'openapi': {
      const { startDocumentMock } = await import('../../demo/document-mock.ts')
      return startDocumentMock({ basePath, document: apiDocumentOf(service) })
    }
    case 'site': {
      const { startEmbeddedSite } = await import('../../demo/site.ts')
      const isNeutral = service.names === 'same' && basePath.endsWith('/site-json')
      return startEmbeddedSite({
        basePath,
        home: new URL(addressOf(service, publicUrl).publicUrl).origin,
        dialect: isNeutral ? 'neutral' : 'wordpress',
        limits,
      })
    }
    default:
      return undefined
  }
}
