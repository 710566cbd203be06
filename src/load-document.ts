import { type MessagePort, workerData } from 'node:worker_threads'
import { loadApiDocument, sendDocument } from './openapi/document/read-document.ts'

// The thread of src/openapi/document/read-document.ts for large documents.
const { file, port } = workerData as { readonly file: string; readonly port: MessagePort }
sendDocument(await loadApiDocument(file), port)
