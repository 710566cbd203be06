import type { ConfigWarning, ServiceConfig } from './config.ts'
import type { UnplacedFault } from './fault.ts'
import type { ConfigShape } from './schema/shape.ts'
import type { DocumentReading, PlantRules, ServiceDocument } from './service-document.ts'

/** A service as the file has it. */
export type ServiceSource = ConfigShape['services'][string]

/** What the contract modules contribute to a configuration: `config` imports none of them. */
export type ContractConfig = {
  readDocument(file: string): Promise<DocumentReading>
  documentFrom(data: string): ServiceDocument
  readonly plantRules: PlantRules
  /** Faults that show only when a service is seen with its document. */
  faults(service: ServiceConfig, source: ServiceSource): Iterable<UnplacedFault>
}

/** What the contract modules know of settings that are allowed, and have no effect or another one than expected. */
export type ContractWarnings = (
  service: ServiceConfig,
  services: readonly ServiceConfig[],
) => Iterable<ConfigWarning>
