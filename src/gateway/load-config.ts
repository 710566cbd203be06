import type { Config } from '../config/config.ts'
import type { ContractConfig, ContractWarnings } from '../config/contract-config.ts'
import type { ConfigResult } from '../config/load.ts'
import * as loading from '../config/load.ts'
import * as warnings from '../config/warnings.ts'
import { documentFaults } from '../openapi/config-faults.ts'
import { ApiDocument, apiDocumentOf, plantRules } from '../openapi/document/api-document.ts'
import { harmlessWriteWarnings } from '../wordpress/config-warnings.ts'

// What the contract modules contribute to reading a configuration; beside contracts.ts, because `trellis check` loads no gateway.

export { apiDocumentOf }

const contracts: ContractConfig = {
  readDocument: async (file) => {
    const { readApiDocument } = await import('../openapi/document/read-document.ts')
    const reading = await readApiDocument(file)
    return reading.kind === 'faults' ? reading : { ...reading, document: new ApiDocument(reading.document) }
  },
  documentFrom: (data) => ApiDocument.from(data),
  plantRules,
  faults: documentFaults,
}

const ofContracts: ContractWarnings = harmlessWriteWarnings

type Environment = Parameters<typeof loading.checkConfig>[2]

/** Checks the text of a configuration file; paths of documents are relative to `folder`. */
export const checkConfig = (text: string, env: Environment, folder?: string): Promise<ConfigResult> =>
  loading.checkConfig(contracts, text, env, folder)

/** Reads and checks a configuration file; without a file, the defaults hold. */
export const loadConfig = (from: Parameters<typeof loading.loadConfig>[1]): Promise<ConfigResult> =>
  loading.loadConfig(contracts, from)

/** The configuration from content that another process has read and checked. */
export const configFromData = (data: unknown): ConfigResult => loading.configFromData(contracts, data)

export const configWarnings = (config: Config) => warnings.configWarnings(config, ofContracts)

export const warningsOf = (checked: Parameters<typeof warnings.warningsOf>[0]) =>
  warnings.warningsOf(checked, ofContracts)
