"""What labels on invoices say, in the languages of Europe and India's English; compared without case and accents.

Each entry is (what it means, how sure that is, pattern). The surest pattern that is found decides; meanings that a
label must not be taken for (`paid`, `unit`, `period` …) are listed beside those that are looked for.
"""

from collections.abc import Mapping, Sequence

from docmill.extraction.local.invoices.titles import CREDIT, FOLLOWED, INVOICE, NUMBER, QUALIFIED, SHORT
from docmill.extraction.phrases import Phrases

_TAX = (
    r"(?:mwst|mehrwertsteuer|ust|u\.?st\.?|umsatzsteuer|mwst\.|vat|tva|t\.v\.a|btw|b\.t\.w|iva|i\.v\.a|moms|mva|alv|"
    r"gst|hst|pst|qst|cgst|sgst|igst|utgst|sales tax|steuer|tax|taxes|taxe|steuern|impuesto|imposta|impot|belasting|"
    r"skatt|podatek|dph|afa|merverdiavgift|arvonlisavero|imposta|pdv|ddv|pvm|pvn|kdv|kaibemaks|tps|tvq|tvh|φπα|ддс)"
)
_EXCLUDED = (
    r"(?:ohne|exkl\.?|excl\.?|exclusief|excluding|exclusive|hors|senza|sin|zonder|before|ex\.?|exkl|exc\.?|escl\.?|ekskl\.?|"
    r"eks\.?|uden|uten|utan|ilman|sem|bez|brez|fara|haric|χωρισ|без)"
)
_INCLUDED = (
    r"(?:inkl\.?|incl\.?|inclusief|including|inclusive|mit|avec|con|incluido|comprese|compresa|inkl|ttc|toutes|"
    r"comprensiv[oa]|compris\w*|inklusive|vcetne|vratane|sisaltaen|dahil)"
)

AMOUNTS: Sequence[tuple[str, float, str]] = (
    # What is to be paid.
    ("due", 1.0, r"(?:total )?amount (?:due|payable|owed|owing)|balance (?:due|payable|outstanding)|net a payer"),
    ("due", 1.0, r"zahlbetrag|zu zahlen(?:der|des|de)?\b|zahlungsbetrag|total (?:due|payable|to pay|a payer|a pagar)"),
    ("due", 1.0, r"te betalen|te voldoen|att betala|a pagar|da pagare|netto a pagare|restant du|reste a payer|payable"),
    ("due", 1.0, r"(?:kvar )?att betala|at betale|k uhrade|maksettava|zu bezahlen|(?:montant )?a regler|net payable"),
    ("due", 0.9, r"pendiente(?: de pago)?|pozostalo|openstaand|valor a pagar|balance (?:owing|remaining)|restbelo[bp]"),
    ("due", 0.9, r"due payable|please pay|offener betrag|ausstehend|noch zu|forderungsbetrag|uberweisungsbetrag"),
    ("due", 0.9, r"amount to pay|^to pay\b|payment due|til betaling|a betale|do zaplaty|zu uberweisen|outstanding|"
     r"solde du"),
    ("due", 1.0, r"\byou owe\b|\bto be paid\b|(?:amount|total|balance) (?:you )?ow(?:e|ed|ing)\b|"
     r"pay this amount|fallige[rs]? betrag|fallige summe|zu begleichen|(?:somme|montant) due?\b|"
     r"(?:total|importe) a abonar|liquido a p\w+|importe a ingresar|"
     r"(?:importo|totale) dovuto|da (?:versare|saldare)|a liquidar|verschuldigd"),
    ("due", 1.0, r"betalningsbelopp|skyldigt? belo[bp]|zbyva uhradit|k zaplaceni|na uhradu|fizetendo|de plata\b|"
     r"za (?:placilo|placanje|uplatu)|odenecek|tasuda\b|tasumisele|apmaksai|moketin?[ai]?\b|за плащане|πληρωτεο"),
    ("due", 0.8, r"\bdue\b|\bbalance\b|\bsaldo\b|\bsolde\b|restbetrag|invoice balance"),
    # The total with tax.
    ("total", 1.0, r"grand ?total|gross (?:total|amount)|total (?:gross|amount)|invoice (?:total|amount)|total ttc"),
    ("total", 1.0, r"(?:end|brutto|gesamt|rechnungs|rechnungsend)(?:summe|betrag|gesamtbetrag|beitrag)|gesamt ?brutto"),
    ("total", 1.0, r"(?:summe|betrag|gesamtbetrag|gesamt|total)\W{0,3}brutto|brutto ?(?:summe|betrag|gesamt)"),
    ("total", 1.0, rf"\b(?:total|totaal|totale|gesamt\w*|summe|montant|bedrag|suma|summa|"
     rf"sum|i alt|yhteensa|belopp|belo[bp]|razem|celkem)\b.{{0,14}}\b{_INCLUDED}|beitrag\b.{{0,14}}\b{_INCLUDED}"),
    ("total", 1.0, r"totale (?:fattura|documento|complessivo)|total (?:de la )?(?:factur\w+|facture)|montant ttc|"
     r"\bttc\b"),
    ("total", 1.0, r"importe total|total importe|totaalbedrag|factuurbedrag|suma brutto|razem brutto|loppusumma|"
     r"eindtotaal"),
    ("total", 1.0, r"total(?:belopp|belo[bp]|sum(?:ma)?\b)|total\b(?<=\wtotal)(?<!zwischentotal)(?<!subtotal)|"
     r"factuurtotaal|total(?:e)? (?:do |del )?documento|valor total|wartosc brutto|celkova castka|"
     r"fakturabelo(?:pp|b|p)"),
    ("total", 1.0, r"\btotal (?:for|of) (?:this|the) invoice|\btotal (?:charges|fees|price)|"
     r"\btotal (?:in|\() ?\(?[a-z]{3}\b|total cost"),
    ("total", 0.9, r"gesamtbetrag|gesamtsumme|endsumme|rechnungsbetrag|summe gesamt|gesamt\b|\bbrutto\b|total general"),
    ("total", 0.8, r"^\W*(?:total|totaal|totale|summe|summa|suma|razem|yhteensa|i alt|totalt|sum|celkem)\b\W*$"),
    ("total", 0.8, r"^\W*(?:total|totaal|totale|summe|summa|suma|razem|totalt)\W{0,4}(?:[a-z]{3}|euro|rs\.?|"
     r"[€$£₹])?\W*$"),
    ("total", 0.9, r"vegosszeg|brutto osszeg|sveukupno|genel toplam|γενικο συνολο|valoare totala|общо с|is viso su"),
    ("total", 0.8, r"^\W*(?:osszesen|ukupno|skupaj|spolu|celkom|is viso|kopa|pavisam|kokku|toplam|συνολο|общо)\b\W*$"),
    ("total", 0.55, r"\btotal\b|\btotaal\b|\btotale\b|\bsumme\b|\bsumma\b|\bbeitrag\b|gesamtbeitrag|\bsuma\b"),
    # The total without tax.
    ("subtotal", 1.0, r"sub ?-?total|subtotaal|zwischen(?:summe|total)|sous-?total|netto ?(?:betrag|summe|"
     r"preis gesamt|gesamt|total|wert)"),
    ("subtotal", 1.0, r"net (?:total|amount|value|sum)|total (?:net|ht|h\.t)|montant (?:net )?h\.?t|taxable (?:value|"
     r"amount)"),
    ("subtotal", 1.0, rf"\b{_EXCLUDED}\W{{0,3}}(?:\d+\W{{0,3}})?{_TAX}"),
    ("subtotal", 1.0, r"base imponible|imponibile|totale? (?:imponibile|netto)|gesamt ?netto|summe netto|netto gesamt"),
    ("subtotal", 1.0, r"(?:summe|betrag|gesamt(?:summe|betrag)?|total|totaal|belopp|suma|razem)\W{0,3}netto|"
     r"valor neto"),
    ("subtotal", 1.0, r"(?:del|mellan|vali)summ?a?\b|veroton|totale (?:merce|righe)|importe neto|total i?liquido|"
     r"base de incidencia|zaklad dane|goods value|(?:total|amount|value) before|exkl\. moms|belob uden"),
    ("subtotal", 1.0, r"netto ossze|osnovica|danova osnova|mezisoucet|medzisucet|vahesumma|ara toplam|\bmatrah\b|"
     r"starpsumma|tarpine suma|medjuzbroj|καθαρη αξια|μερικο συνολο|данъчна основа|междинна сума"),
    ("gross", 1.0, rf"(?:sub ?-?total|subtotaal|zwischen(?:summe|total)|sous-?total|delsumma?|parziale)\W{{0,3}}"
     rf"{_INCLUDED}"),
    ("subtotal", 0.8, r"\bnetto\b|\bnet\b(?! weight| a payer)|\bhors taxes?\b|\bht\b|maatstaf|grundlag|warenwert"),
    ("subtotal", 0.7, r"positionssumme|positionen netto|summe (?:der )?positionen|(?:goods|items?|lines?) total|"
     r"^\W*(?:usage )?charges\W*$"),
    ("subtotal", 0.6, r"basisbetrag|taxable|base tva|base ht|bemessungsgrundlage|steuerbasis|gesamtbeitrag"),
    # The tax.
    ("tax", 1.0, rf"(?:total|summe|gesamt|sum)\W{{0,3}}(?:of )?\b{_TAX}|\b{_TAX}\W{{0,3}}(?:total|gesamt|betrag|"
     rf"amount|bedrag|belopp)"),
    ("tax", 1.0, rf"(?:montant|importe|bedrag|betrag|amount|importo)\W{{0,3}}(?:de la |de |of )?{_TAX}|steuerbetrag|"
     rf"\w+steuerbetrag"),
    ("tax", 0.9, rf"(?<![^\s\(+]){_TAX}\d{{0,2}}\b(?!\W{{0,3}}(?:id|nr|no|number|nummer|reg|ident|invoice|rechnung))"),
    ("tax", 0.9, r"(?:versicherung|umsatz|mehrwert)s?steuer|\bzzgl\b.{0,12}%|\bplus \d+"),
    # Not these.
    ("paid", 1.0, r"anzahlung|acompte|already paid|deja paye|amount paid|(?<!be\s)\bpaid\b|prepaid|deposit|bezahlt|"
     r"betaald|paye\b"),
    ("paid", 1.0, r"payment received|payments?\b(?! terms)|(?:geleistete|gezahlte) abschlage|"
     r"erhaltene|gezahlt|vorauszahlung|avance|anticipo|voldaan|"
     r"ideal"),
    ("paid", 1.0, r"advance|abschlagszahlung|credit applied|retainer|cash|visa|mastercard|kreditkarte|change\b|"
     r"offene zahl"),
    ("paid", 1.0, r"inbetalt|for(?:ud|skuds)betal|forskudd|forskott|maksettu|zaplacono|pagado|a cuenta|adiantamento|"
     r"(?<!d')(?<!ritenuta\s)acconto|akonto|a-?conto\b|vooruitbetaald|aanbetaling|deja (?:regle|verse)|arrhes"),
    ("discount", 1.0, r"alennus|desconto|rabat\b|upust|\bretention\b|einbehalt\b|retenue de garantie|retencion|"
     r"holdback|ritenuta|\birpf\b|withh[eo]ld|retencao|retenue a la source|quellensteuer|\btds\b"),
    ("discount", 1.0, r"rabatt|discount|remise|skonto|korting|sconto|descuento|nachlass|abschlag|escompte|allowance"),
    ("discount", 1.0, r"gutschrift\b|rebate|reduction|credits?\b|zuschlage?\b|surcharge|(?<!reverse\s)\bcharge\b|"
     r"toeslag"),
    ("shipping", 1.0, r"versand|shipping|porto|fracht|frais de port|verzendkosten|delivery|spese|trasporto|handling|"
     r"gastos"),
    ("shipping", 1.0, r"frakt\b|fragt\b|freight|carriage|postage|toimituskulut|portes\b|\bport\b|"
     r"koszt\w* dostawy|frete"),
    ("rounding", 1.0, r"rundung|rounding|round off|arrondi|afronding|oresavrundning"),
    ("unit", 1.0, r"unit price|einzelpreis|prix unitaire|p\.?u\.?\b|stuckpreis|prijs per|stukprijs|preis/einh|"
     r"je stuck"),
    ("carried", 1.0, r"suma y sigue|(?:a )?riport(?:o|are)\b|a reporter|a transportar|overfor(?:t|sel)|przeniesienia|"
     r"siirto|\bc/f\b|\bb/f\b|balance forward"),
    ("carried", 1.0, r"ubertrag|carried (?:over|forward)|brought forward|^\W*(?:report|transport)\b\W*$|"
     r"previous balance|vorsaldo"),
    ("saving", 1.0, r"you save|ersparnis|capital|kapital|indemnite|penalit|mahngebuhr|late fee|limit|vorjahr|penalty"),
    ("carried", 1.0, r"(?:last|previous|prior) (?:bill|account|statement|invoice)|opening balance|alter saldo|"
     r"(?:letzte|vorherige) rechnung|(?:ancien|precedent) solde|solde (?:precedent|anterieur)|facture precedente|"
     r"saldo (?:anterior|precedente)|factura anterior|(?:fattura|bolletta) precedente|"
     r"vorig(?:e factuur|e rekening| saldo)|"
     r"(?:forrige|foregaende) faktura|edellinen lasku|poprzednie saldo|predchozi (?:faktura|zustatek)"),
    ("saving", 1.0, r"past due|rebilling|returned che|late (?:payment|charge)|subject to|verzugszins|mahnkosten|"
     r"interets? de retard|intereses? de demora|interessi di mora|vertragingsrente|drojsmalsranta"),
    ("saving", 1.0, rf"(?:n°|\bnr\.?|\bno\.?|numero) ?(?:de |di )?{_TAX}\b"),
    ("quantity", 0.9, r"\b(?:weight|gewicht|poids|menge|qty|quantity|volume|volumen)\b"),
)  # fmt: skip

DATES: Sequence[tuple[str, float, str]] = (
    ("issue", 1.0, r"(?:invoice|bill|tax invoice|receipt|document|credit note)\W{0,2}dated?\b|"
     r"date\W{0,2}of\W{0,2}(?:issue|invoice)"),
    ("issue", 1.0, r"(?:rechnungs|beleg|ausstellungs|gutschrifts|factuur|faktura|fakturerings)-?\W?(?:datum|dato|"
     r"dat\b)"),
    ("issue", 1.0, r"date\W{0,2}(?:de |d')?(?:la |l')?(?:facture|facturation|emission|avoir)|data\W{0,2}(?:fattura|"
     r"documento|emissione|faktury)"),
    ("issue", 1.0, r"fecha\W{0,2}(?:de )?(?:la )?(?:factura|emision|expedicion)|issue\w* (?:date|on|at)|"
     r"(?:is)?sued (?:on|at)|factuurdatum"),
    ("issue", 1.0, r"data wystawienia|laskun paivays|fakturadato|data da fatura|date issued|billing date|"
     r"statement date"),
    ("issue", 1.0, r"tax (?:point|date)|laskupaiva|data de emissao|fecha de expedicion|datum vystaveni|keltezes"),
    ("issue", 1.0, r"data doc\b|doc\.? date|(?:freight )?bill date|kelte|izdavanja|izdaje|datum izdani|data emiterii|"
     r"arve kuupaev|rekina datums|saskaitos data|ημερομηνια εκδοσησ|дата на издаване|utstedt|udstedt|utfardad|"
     r"duzenleme|dagsetning"),
    ("issue", 1.0, r"emitid[ao] (?:el|em)\b|emess[ao] il\b|emise? le\b|ausgestellt am\b|opgemaakt op\b|^issued\W*$"),
    ("issue", 0.9, r"(?:rechnung|invoice|facture|factuur|fattura|factura|nr|no|n°|faktura)\b.{0,40}\b(?:vom|von|of|"
     r"from|du|dated|del|van|den|av)\W*$"),
    ("issue", 0.75, r"^\W*(?:dated?|datum|data|fecha|dato|paivays|paivamaara)\W*$|(?<![^\s:|])(?:date|datum|data|"
     r"fecha)\s*[:.]?\s*$"),
    ("issue", 0.7, r"^\D{3,25},\W*(?:den|le|the|il|am|a)?\W*$"),
    ("issue", 0.6, r"(?:rechnung|invoice|facture|factuur|fattura|factura|faktura|gutschrift)\b"),
    ("issue", 0.5, r"\b(?:date|datum|data|fecha|dato)\b|, den\b|\bden\W*$|\ble\W*$"),
    ("due", 1.0, r"due\W{0,2}(?:date|by|on)|date\W{0,2}due|payment\W{0,2}due|pay(?:able)? (?:by|before|until)|due\W*$"),
    ("due", 1.0, r"fallig|zahlbar\b.{0,25}\bbis\W*$|zahlbar bis|zahlungsziel|zahlungsfrist|zahlung bis|"
     r"bis spatestens|zahltag|begleichen"),
    ("due", 1.0, r"echeance|a payer (?:avant|le)|verval|betalen (?:voor|uiterlijk)|uiterste betaal|betaaldatum"),
    ("due", 1.0, r"scadenza|vencimiento|forfall|forfald|sista betalning|betal(?:as|es) senest|erapaiva|"
     r"termin platnosci"),
    ("due", 1.0, r"(?:a )?regler (?:avant|le|au plus)|date limite|tillhanda senast|betalings(?:dato|frist)|vencimento|"
     r"termin zaplaty|splatnost|(?:please )?pay by|fecha limite|payable jusqu|a payer avant|scadent|"
     r"(?:to be )?paid by|termen de plata"),
    ("due", 1.0, r"scaden[zt]|a regler au|direct debit|collection date|pay this amount|lastschrift|abbuchung|einzug|"
     r"prelevement|preleve|addebito|(?:fecha|data|dia)\W{0,2}(?:de |del |do |di )?(?:cargo|cobro|adeudo|debito|"
     r"cobranca|addebito|limite)|incasso|autogiro|avtalegiro|pagar (?:ate|antes)|pagare entro|platn[eya] do|"
     r"zaplaty do"),
    ("due", 1.0, r"fizetesi hatarido|esedekes|hatarideje|rok (?:placila|placanja|za placanje)|dospij|zapadlost|"
     r"maksetahta|makse tahtaeg|apmaksas termin|apmoketi iki|mokejimo terminas|gjalddag|eindag|\bvade\b|son odeme|"
     r"ληξη|πληρωμησ εωσ|падеж|uiterlijk|tillhanda|innen forfall|au plus tard"),
    ("due", 0.7, r"^\W*(?:by|no later than|before)\W*$"),
    ("due", 0.8, r"bis zum\W*$"),
    ("due", 0.9, r"remit (?:until|by)|until\W*$|\bbis\W*$|ohne abzug|rein netto|net due|uberweis\w+ .{0,20}bis"),
    ("delivery", 1.0, r"liefer(?:datum|termin|tag)|leistungs(?:datum|zeit|tag)|date de livraison|delivery|"
     r"leverings?datum"),
    ("delivery", 1.0, r"liefer- und leistungs|date of supply|supply date|shipping date|shipped|service date|leverans|"
     r"consegna"),
    ("delivery", 1.0, r"date of delivery|prestation|entrega|leistung vom|geliefert|livraison|versand(?:datum|tag)|"
     r"lieferschein"),
    ("order", 1.0, r"(?:order|bestell|auftrags|purchase order|po|commande|ordine|pedido)\w*\W{0,3}(?:date|datum|data|"
     r"dat\b)"),
    ("order", 1.0, r"date\W{0,2}(?:de |du )?(?:la )?(?:commande|bon)|bon de|bestell\w*\W{0,3}(?:nr|nummer|no)"),
    ("order", 1.0, r"(?:fecha|data)\W{0,2}(?:de |del |do |dell')?(?:pedido|ordine|encomenda)|"
     r"(?:besteld op|bestellt am|ordered on|commandee? le|ordinat[ao] il)\b"),
    ("order", 0.55, r"bestell|order|auftrag|contrat|vertrag|contract"),
    ("order", 1.0, r"facture associee|preceding invoice|original invoice|bezug|kundenreferenz|urspr"),
    ("period", 1.0, r"zeitraum|period|periode|begin|start|debut|fin de|betriebsferien"),
    ("period", 0.6, r"from\W*$|\bvom\W*$|\bdu\W*$|\bau\W*$|\bto\W*$"),
    ("period", 1.0, r"check.?in|check.?out|anreise|abreise|arrival|departure|arrivee|aankomst|vertrek|subscription|"
     r"billing cycle|abrechnungs|laufzeit|stand\b|valid"),
    ("discount", 1.0, r"skonto|discount|escompte|sconto|descuento|korting"),
    ("paid", 1.0, r"\bpaid\b|bezahlt|paid on|paye le|gezahlt|betaald|iDEAL"),
    ("payment", 1.0, r"payment date|date of payment|zahlungsdatum|zahldatum|date d[eu] (?:paiement|reglement)|"
     r"fecha de pago|data (?:di |de |do )?pagamento"),
    ("print", 0.9, r"druckdatum|gedruckt|printed|zeit\b|time\b|erstellt|generated|version"),
    ("birth", 1.0, r"birth|geburt|naissance|zulassung|registration date"),
)  # fmt: skip

NUMBERS: Sequence[tuple[str, float, str]] = (
    ("number", 1.0, r"(?:invoice|tax invoice|bill|receipt|credit note|document)\W{0,2}(?:number|no\b|num\b|nr|n°|#|"
     r"id\b|ref\w*\b)"),
    ("number", 1.0, r"(?:rechnungs|beleg|gutschrifts|faktura|factuur|fakturerings|storno\w*|\brg|"
     r"\bre\b)-?\W{0,2}(?:nummer|nr|no\b|n°|#|num)"),
    ("number", 1.0, r"(?:rechnung|faktura|facture|factuur|fattura|factura|gutschrift|fatura|lasku\w*|avoir|"
     r"invoice)\W{0,3}(?:nr|no\b|n°|num\w*|#|nro|n\b)"),
    ("number", 1.0, r"(?:numero|n°|num\.?|nr\.?|no\.?|number)\W{0,2}(?:de |of |di |della |da )?(?:la )?(?:facture|"
     r"factura|fattura|invoice|faktury|fatura|rechnung)"),
    ("number", 1.0, r"\binv\W{0,2}(?:no\b|nr|num|#)|\bn\W{0,2}(?:fattura|documento)|num(?:ero|\.)? (?:de )?documento|"
     r"laskunumero|cislo faktury|faktura c\.|doklad c\.|(?:nr|numarul) facturii|\bpiece n°"),
    ("number", 1.0, rf"\b(?:{INVOICE}|{CREDIT}){FOLLOWED}?\W{{0,3}}(?:{NUMBER}|{SHORT})"),
    ("number", 1.0, rf"\b{NUMBER}\W{{0,2}}(?:de |of |di |della |da |do |del |d')?(?:la |l')?(?:{INVOICE}|{CREDIT})\b"),
    ("number", 1.0, r"\b(?:num\w*|no|nr|n°|n|nro)\W{0,2}(?:de |del |di |do )?(?:doc|documento|dokument\w*|piece)\b|"
     r"\b(?:doc|documento|dokument\w*|piece|pro|asiakirjan)\W{0,2}(?:num\w*|no|nr|n°|#)\b"),
    ("number", 0.95, r"(?:handels|schluss|abschlags|miet|bau|beitrags)?rechnung(?: \w+)? (?:\(\d+\) )?nr|"
     r"fakturanummer|laskun numero|numer faktury"),
    ("number", 0.9, r"(?:rechnung|invoice|facture|factuur|fattura|factura|faktura|gutschrift)\b.{0,45}(?:\bnr|\bno|"
     r"n°|\bnumber|#)\W*$"),
    ("number", 1.0, r"faktura vat|tax invoice\W{0,3}(?:no|nr|num|#)"),
    ("number", 0.8, r"^\W*(?:\w*rechnung|invoice|facture|factuur|fattura|factura|faktura|gutschrift|credit note|"
     r"tax invoice)\W*#?\W*$"),
    ("number", 0.8, rf"^\W*{QUALIFIED}{{0,2}}(?:{INVOICE}|{CREDIT}){FOLLOWED}{{0,2}}\W*#?\W*$"),
    ("number", 0.55, rf"^\W*(?:{NUMBER}|{SHORT})\W*$|(?:document|doc|receipt|booking|transaction|"
     r"billing)\W{0,2}(?:id|no|nr|number|#)"),
    ("number", 0.6, r"^\W*(?:our )?ref(?:erence|\.)?\W{0,2}(?:no\b|number|nr\b|#)\W*$"),
    ("number", 0.5, r"variabil\w+ symbol"),
    ("number", 0.35, r"vorgang|reference\W*$|referenz\W*$|\bref\W*$|\bid\W*$|vertrag\w* nr|vsnr"),
    ("order", 1.0, r"(?:order|bestell\w*|auftrags?\w*|purchase order|p\.?o\.?|commande|ordine|pedido|"
     r"sales)\W{0,3}(?:number|no\b|nr|nummer|n°|#|id|ref)"),
    ("order", 1.0, r"(?:encomenda|objednavk\w|zamowieni\w+|tilaus\w*|ordre|comanda|narudzb\w+|narocil\w+|"
     r"requisicao)\b"),
    ("order", 1.0, r"bon de|bestellung|lieferschein\w*|delivery note|packing|shipment|livraison|your order|"
     r"ihre bestellung|commande"),
    ("customer", 1.0, r"(?:customer|kunden?\w*|client|klant|cliente|account|konto|debitor\w*|kund|member|"
     r"user)\W{0,3}(?:number|no\b|nr|nummer|n°|#|id|code)?"),
    ("taxid", 1.0, r"\b(?:gstin|siret|siren|kvk|hrb|hra|cin|pan|abn|ein|nif|cif|nip|cvr|uid|ust-?id\w*|"
     r"steuernummer)\b|p\.? ?iva"),
    ("taxid", 1.0, r"\b(?:vat|ust\.?|st\.?|tax|tva|btw|iva|gst|mwst|moms|steuer|org)\.?\W{0,3}(?:id|no\b|nr|nummer|"
     r"number|ident|reg|n°)"),
    ("taxid", 1.0, r"\b(?:dic|ic dph|ico|oib|p\.? ?i|c\.? ?f|codice fiscale|n\.? ?i\.? ?[fp]|r\.? ?u\.? ?c|rfc|regon|"
     r"bdo|krs|org\.? ?n[ro]|cui|αφμ|α\.φ\.μ|еик|eik|pib|adoszam|y-tunnus|kennitala|rea|r\.e\.a|atcud|contrib)\b"),
    ("bank", 1.0, r"iban|bic|swift|\bblz\b|account no|sort code|routing|kontonummer|mandat|ifsc|bank|\brekening"),
    ("phone", 1.0, r"\btel|phone|fax|mobil|\bfon\b|telefon|handy|hotline"),
    ("other", 1.0, r"seite|page|pagina|contract|vertrags\w*|contrat|projekt|project|tender|gln|leitweg|hsn|sac\b|"
     r"artikel|item|kennz"),
    ("other", 1.0, r"d'origine|\borigine\b|rectifica a|corrige|puvodni|(?:related|previous|last|prior) (?:invoice|bill|"
     r"statement)|precedente?\b|\brif\.|bezugs\w*|(?:gutschrift|storno|korrektur)\w* (?:zu|der|von)\b"),
    ("other", 1.0, r"associee|preceding|original invoice|dossier|serien|serial|zahlungsreferenz|payment ref|"
     r"cost cent|kostenstelle"),
)  # fmt: skip


_KEPT = 1024
"""Labels that are remembered with what they mean: those of a few dozen documents, and of all that say the same."""


class Reader:
    """Looks labels up in one of the tables; the surest meaning of a label weakens the others."""

    def __init__(self, entries: Sequence[tuple[str, float, str]], order: Sequence[str]) -> None:
        # OCR loses spaces, so none is needed. What means the same as surely is looked for at once, the surest first.
        alike: dict[tuple[str, float], list[str]] = {}
        for meaning, sure, pattern in entries:
            alike.setdefault((meaning, sure), []).append(pattern.replace(" ", " ?"))
        self._entries = tuple(
            (meaning, sure, Phrases("|".join(patterns)))
            for (meaning, sure), patterns in sorted(alike.items(), key=lambda entry: -entry[0][1])
        )
        # Most lines are no labels: what is in none of the patterns is asked for once.
        self._any = Phrases("|".join([pattern.replace(" ", " ?") for _, _, pattern in entries]), heads=True)
        self._order = {meaning: number for number, meaning in enumerate(order)}
        self._known: dict[str, Mapping[str, float]] = {}

    def __call__(self, label: str) -> Mapping[str, float]:
        """What a plain label means, each meaning with how sure that is."""
        known = self._known.get(label)
        if known is None:
            if len(self._known) >= _KEPT:
                self._known.clear()
            known = self._known[label] = self._meanings(label)
        return known

    def _meanings(self, label: str) -> Mapping[str, float]:
        found: dict[str, float] = {}
        if not self._any.within(label):
            return found
        for meaning, sure, phrases in self._entries:
            if sure > found.get(meaning, 0.0) and phrases.within(label):
                found[meaning] = sure
        if len(found) > 1:
            first = min(found, key=lambda meaning: (-found[meaning], self._order.get(meaning, 99)))
            found = {meaning: sure if meaning == first else sure * 0.3 for meaning, sure in found.items()}
        return found


AMOUNT_LABELS = Reader(
    AMOUNTS, ("paid", "discount", "unit", "carried", "saving", "gross", "due", "subtotal", "total", "tax")
)
DATE_LABELS = Reader(DATES, ("discount", "order", "period", "due", "delivery", "paid", "issue"))
NUMBER_LABELS = Reader(NUMBERS, ("other", "order", "bank", "number", "taxid", "customer"))
