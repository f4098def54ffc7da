//! Sending by hand: into the message that a handler is at, or, outside of one, to the broker and back.
use super::{Record, Topic, TopicError, record::Borrowed, records::Records};
use crate::transaction::{self, Transaction};

impl<K: Send + Sync + 'static, V: Send + Sync + 'static> Topic<K, V> {
    /// Sends a record.
    ///
    /// In a handler, and in what it awaits, the record becomes part of the message: it is written at once, leaves when
    /// the message is published, and never if it is not. The call does not wait then. Elsewhere, in a task that a
    /// handler has spawned for example, it is given to the producer at once, and the call waits until it is acknowledged;
    /// to send many, await them together, since each waits for the linger (`linger.ms`) and a round trip.
    ///
    /// ```
    /// use slipstream_core::kafka::Kafka;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> slipstream_core::Result<()> {
    /// let kafka = Kafka::in_process()?;
    /// kafka.create_topic("greetings", 1).await?;
    /// let greetings = kafka.topic::<String, String>("greetings").text();
    /// greetings.send("Anna".into(), "good morning".into()).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`TopicError`] when key or value cannot be written. Outside of messages also when the cluster does not have the
    /// topic, when no broker answers, and when the record is given up: after the setting `message.timeout.ms`, which is
    /// five minutes, at the latest.
    ///
    /// # Cancel safety
    /// Outside of messages a record may or may not be sent when the future is dropped. It is not sent twice.
    pub async fn send(&self, key: K, value: V) -> Result<(), TopicError> {
        let pair = (key, value);
        self.send_borrowed((&pair).into()).await
    }

    /// Sends a record with a partition, a timestamp or headers of its own; see [`send`](Topic::send) for the rest.
    ///
    /// ```
    /// use slipstream_core::kafka::{Kafka, Record};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> slipstream_core::Result<()> {
    /// let kafka = Kafka::in_process()?;
    /// kafka.create_topic("greetings", 4).await?;
    /// let greetings = kafka.topic::<(), String>("greetings").text();
    /// greetings.send_record(Record::new((), "hola".into()).header("language", "es").partition(2)).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`send`](Topic::send), and [`TopicError::Record`] for a partition, timestamp or header that cannot be
    /// sent.
    ///
    /// # Cancel safety
    /// That of [`send`](Topic::send).
    pub async fn send_record(&self, record: Record<K, V>) -> Result<(), TopicError> {
        self.send_borrowed((&record).into()).await
    }

    async fn send_borrowed(&self, record: Borrowed<'_, K, V>) -> Result<(), TopicError> {
        if self.config.is_dry_run {
            return self.config.pretend(&record);
        }
        let put = transaction::with(|current| {
            let Transaction { outgoing, watched, .. } = current?;
            Some(self.config.put(&record, watched.as_mut(), outgoing))
        });
        if let Some(put) = put {
            return put;
        }
        let outlet = self.config.open_outlet().await?;
        let mut records = Records::default();
        self.config.write(&record, None, &outlet, &mut records)?;
        outlet.producer.send(records).await
    }
}
